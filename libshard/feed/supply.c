/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supply.c - where the rows of slots come from: a dataset, its paths, and its decoded chunks
 *
 * All threads of a crew share one supply.
 */
#include "libshard/feed/feed.h"

#include <inttypes.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"

/* If the parts of a mixture store their records in different ways, each has a layout. */
static bool open_layouts(struct layouts *l, const struct shard_dataset *ds, const struct layout *batch)
{
	*l = (struct layouts){.batch = batch};
	if (!ds->parts_differ)
		return true;
	l->part = mem_array(ds->part_count, sizeof(*l->part));
	if (!l->part)
		return false;
	l->part_shard = ds->part_shard;
	l->part_count = ds->part_count;
	for (uint32_t p = 0; p < l->part_count; p++)
		layout_plan_part(&l->part[p], batch, &ds->part[p]->m.schema);
	return true;
}

int supply_open(struct supply *s, struct shard_dataset *ds, const struct shard_loader_options *o,
		const struct layout *layout, const struct steps *steps, uint64_t rows_ahead, struct shard_error *err)
{
	int rc;

	s->ds = ds;
	s->layout = layout;
	s->steps = steps;
	s->on_corrupt = o->on_corrupt;
	s->guess_records = ds->first_record[1] ? ds->first_record[1] : 1;
	s->damage.status = SHARD_OK;
	pthread_mutex_init(&s->lock, NULL);
	if (open_layouts(&s->layouts, ds, layout) && paths_open(&s->paths, ds, &s->layouts, o->path))
		rc = stages_open(&s->stages, ds, &s->layouts, steps, rows_ahead, o->stage_bytes, err);
	else
		rc = error_set(err, SHARD_E_MEMORY, "no memory for the paths of %" PRIu64 " shards", ds->m.shard_count);
	if (rc)
		supply_close(s, false);
	return rc;
}

void supply_close(struct supply *s, bool inherited)
{
	stages_close(&s->stages, inherited);
	paths_close(&s->paths, inherited);
	mem_free(s->layouts.part);
	s->layouts.part = NULL;
	if (!inherited)
		pthread_mutex_destroy(&s->lock);
}

int supply_set_aside(struct supply *s, uint8_t *row_flags, const struct shard_error *problem)
{
	*row_flags |= ROW_DAMAGED;
	if (!problem)
		return SHARD_OK;
	pthread_mutex_lock(&s->lock);
	s->damage = *problem;
	pthread_mutex_unlock(&s->lock);
	return SHARD_OK;
}

bool supply_last_damage(struct supply *s, struct shard_error *out)
{
	bool has;

	pthread_mutex_lock(&s->lock);
	has = s->damage.status != SHARD_OK;
	if (has)
		*out = s->damage;
	pthread_mutex_unlock(&s->lock);
	return has;
}
