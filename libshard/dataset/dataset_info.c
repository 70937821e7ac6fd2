/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_info.c - what a dataset says of itself
 */
#include <string.h>

#include "libshard/dataset/dataset.h"
#include "shard_pack.h"

uint64_t shard_dataset_record_count(const struct shard_dataset *ds)
{
	return ds->m.record_count;
}

const struct shard_schema *shard_dataset_schema(const struct shard_dataset *ds)
{
	return &ds->m.schema;
}

const struct shard_field *shard_field_find(const struct shard_dataset *ds, const char *name)
{
	return shard_schema_find(&ds->m.schema, name);
}

void shard_dataset_manifest(const struct shard_dataset *ds, struct shard_view *out)
{
	*out = (struct shard_view){ds->text.text, ds->text.bytes};
}

void shard_dataset_info(const struct shard_dataset *ds, struct shard_dataset_info *out)
{
	uint64_t units;

	memset(out, 0, sizeof(*out));
	out->record_count = ds->m.record_count;
	out->class_count = ds->m.class_count;
	out->seed = ds->m.seed;
	out->order = ds->m.order;
	out->has_plan_digest = ds->m.has_plan_digest;
	memcpy(out->plan_digest, ds->m.plan_digest, sizeof(out->plan_digest));
	out->shard_count = dataset_totals(ds, &units, &out->data_bytes);
	dataset_id(ds, out->id);
}

const char *shard_dataset_class_name(const struct shard_dataset *ds, uint64_t class_idx)
{
	return class_idx < ds->m.class_count ? ds->class_names + ds->class_at[class_idx] : NULL;
}

int shard_dataset_moments(const struct shard_dataset *ds, uint32_t field, uint32_t channel, struct shard_moments *out,
			  struct shard_error *err)
{
	(void)err;
	if (field >= SHARD_FIELDS_MAX || channel >= ds->stat_count[SHARD_STAT_MOMENTS - 1][field])
		return SHARD_END;
	*out = ds->moments[field][channel];
	return SHARD_OK;
}

int shard_dataset_class_records(const struct shard_dataset *ds, uint32_t field, uint64_t class_idx, uint64_t *out,
				struct shard_error *err)
{
	(void)err;
	if (field >= SHARD_FIELDS_MAX || class_idx >= ds->stat_count[SHARD_STAT_CLASSES - 1][field])
		return SHARD_END;
	*out = ds->class_records[field][class_idx];
	return SHARD_OK;
}
