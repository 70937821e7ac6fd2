/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supply.c - see supply.h
 */
#include "libshard/load/supply.h"

#include <inttypes.h>

#include "libshard/base/error.h"
#include "libshard/store/read/dataset.h"

int supply_open(struct supply *s, struct shard_dataset *ds, const struct layout *layout, const struct steps *steps,
		const struct supply_options *o, struct shard_error *err)
{
	int rc;

	s->ds = ds;
	s->layout = layout;
	s->on_corrupt = o->on_corrupt;
	s->guess_records = ds->first_record[1] ? ds->first_record[1] : 1;
	damage_open(&s->damage);
	if (paths_open(&s->paths, ds, o->path))
		rc = stages_open(&s->stages, ds, steps, o->rows_ahead, o->stage_bytes, err);
	else
		rc = error_set(err, SHARD_E_MEMORY, "no memory for the paths of %" PRIu64 " shards", ds->m.shard_count);
	if (rc)
		supply_close(s, false);
	return rc;
}

void supply_close(struct supply *s, bool inherited)
{
	stages_close(&s->stages, inherited);
	paths_close(&s->paths);
	if (!inherited)
		damage_close(&s->damage);
}
