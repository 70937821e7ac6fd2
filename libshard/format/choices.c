/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choices.c - what packers choose by themselves: groups, meanings of names, sizes of shards
 *
 * Pure.  Two packers that are given the same records choose the same, so their datasets have the
 * same bytes.
 */
#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/format/schema.h"
#include "shard_pack.h"

#define SMALL_BYTES	    16
#define MIB		    (UINT64_C(1) << 20)
#define SHARDS_WANTED	    8
#define SHARD_BYTES_LEAST   (64 * MIB)
#define SHARD_BYTES_MOST    (1024 * MIB)
#define SHARD_BYTES_UNKNOWN (256 * MIB)		/* of a dataset whose number of records is not known */
#define SHARD_BYTES_LIMIT   (UINT64_C(1) << 43) /* half of what the format allows: the rest is for the tables */

/* ---- groups ---- */

static bool is_small(const struct shard_field *f)
{
	uint64_t bytes = shard_dtype_bytes(f->dtype);

	for (uint32_t d = 0; d < f->ndim && d < SHARD_DIMS_MAX; d++)
		if (!mul_fits(bytes, f->shape[d], &bytes))
			return false;
	return bytes <= SMALL_BYTES;
}

void shard_schema_group(struct shard_schema *schema)
{
	uint32_t count = schema->field_count < SHARD_FIELDS_MAX ? schema->field_count : SHARD_FIELDS_MAX, most = 0;
	bool has_first = false; /* a field that is in group 0 */

	for (uint32_t i = 0; i < count; i++) {
		const struct shard_field *f = &schema->field[i];

		has_first = has_first || (f->group == SHARD_GROUP_BY_SIZE ? !is_small(f) : !f->group);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct shard_field *f = &schema->field[i];

		if (f->group == SHARD_GROUP_BY_SIZE)
			f->group = has_first && is_small(f);
		most = f->group > most ? f->group : most;
	}
	schema->group_count = most + 1;
}

/* ---- what fields are ---- */

static bool is_integer(uint32_t dtype)
{
	return dtype >= SHARD_U8 && dtype <= SHARD_I64;
}

static bool are_channels(uint32_t n)
{
	return n == 1 || n == 3 || n == 4;
}

void shard_field_infer(struct shard_field *f)
{
	if (!strcmp(f->name, "label") && !f->ndim && is_integer(f->dtype)) {
		f->dtype = SHARD_I64;
		f->semantic = SHARD_LABEL;
	} else if (!strcmp(f->name, "image") && f->ndim == 3 &&
		   (are_channels(f->shape[2]) || are_channels(f->shape[0]))) {
		f->layout = are_channels(f->shape[2]) ? SHARD_HWC : SHARD_CHW;
		f->semantic = SHARD_IMAGE;
	}
}

uint32_t shard_field_channels(const struct shard_field *f)
{
	uint32_t channels = 0;

	if (f->kind != SHARD_TENSOR || f->dtype != SHARD_U8 || f->semantic != SHARD_IMAGE || f->ndim != 3)
		return 0;
	if (f->layout == SHARD_HWC || f->layout == SHARD_CHW)
		channels = f->shape[f->layout == SHARD_HWC ? 2 : 0];
	return channels <= SHARD_TALLY_CHANNELS_MAX ? channels : 0;
}

int shard_field_is_texts(const struct shard_field *f)
{
	return f->kind == SHARD_RAGGED && f->dtype == SHARD_U8 && f->semantic == SHARD_TEXT && f->ndim == 2 &&
	       f->ragged_axes == 1;
}

const struct shard_field *shard_schema_label(const struct shard_schema *schema)
{
	for (uint32_t i = 0; i < schema->field_count; i++) {
		const struct shard_field *f = &schema->field[i];

		if (f->semantic == SHARD_LABEL && f->dtype == SHARD_I64 && !f->ndim)
			return f;
	}
	return NULL;
}

int shard_label_read(const struct shard_field *label, const void *const *group, uint64_t class_count, int64_t *value)
{
	*value = (int64_t)load64((const uint8_t *)group[label->group] + label->offset);
	return *value >= 0 && (uint64_t)*value < class_count;
}

/* ---- shards ---- */

/*
 * An eighth of the dataset, within limits: then the last shard, whose way to the disk and back
 * overlaps with nothing, is a small part of the whole, and what a killed run has to make again is
 * small too.
 */
static uint64_t default_records(uint64_t stride, uint64_t total)
{
	uint64_t records = total == SHARD_COUNT_UNKNOWN ? SHARD_BYTES_UNKNOWN / stride : ceil_div(total, SHARDS_WANTED);

	if (records < SHARD_BYTES_LEAST / stride)
		records = SHARD_BYTES_LEAST / stride;
	records = min_u64(records, SHARD_BYTES_MOST / stride);
	return records ? records : 1;
}

int shard_schema_shard_records(const struct shard_schema *schema, uint64_t records, uint64_t bytes, uint64_t total,
			       uint64_t *out, struct shard_error *err)
{
	uint64_t stride = schema_strides(schema);

	if (!stride)
		return error_set(err, SHARD_E_ARGUMENT,
				 "the size of a record is unknown; call shard_schema_lay_out() first");
	if (records && bytes)
		return error_set(err, SHARD_E_ARGUMENT,
				 "the size of a shard is given both in records and in bytes; give one of them");
	if (bytes)
		records = bytes < stride ? 1 : bytes / stride;
	if (records > SHARD_BYTES_LIMIT / stride)
		return error_set(err, SHARD_E_ARGUMENT,
				 "shards of %" PRIu64 " records of %" PRIu64 " bytes are too large; the limit is "
				 "%" PRIu64 " bytes, which is %" PRIu64 " records",
				 records, stride, SHARD_BYTES_LIMIT, SHARD_BYTES_LIMIT / stride);
	*out = records ? records : default_records(stride, total);
	return SHARD_OK;
}
