/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supply.c - see supply.h
 */
#include "libshard/feed/supply.h"

#include <inttypes.h>

#include "libshard/base/error.h"
#include "libshard/store/read/dataset.h"

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
	if (paths_open(&s->paths, ds, layout, o->path))
		rc = stages_open(&s->stages, ds, layout, steps, rows_ahead, o->stage_bytes, err);
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
