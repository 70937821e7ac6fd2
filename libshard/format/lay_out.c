/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lay_out.c - from what a user wants to store to groups, meanings, places and sizes of shards
 *
 * The choices of format/SHARD.md 2.9.  Two packers that are given the same records choose the same,
 * so their datasets have the same bytes.
 */
#include "format/shard_format.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/format/format.h"
#include "shard_pack.h"

#define SMALL_BYTES	    16
#define MIB		    (UINT64_C(1) << 20)
#define SHARDS_WANTED	    8
#define SHARD_BYTES_LEAST   (64 * MIB)
#define SHARD_BYTES_MOST    (1024 * MIB)
#define SHARD_BYTES_UNKNOWN (256 * MIB)		/* of a dataset whose number of records is not known */
#define SHARD_BYTES_LIMIT   (UINT64_C(1) << 43) /* half of what the format allows: the rest is for the tables */
#define UNIT_BYTES	    4096u		/* a leaf hash over less would cost more than 0.2 % of space */
#define CHUNK_BYTES	    65536u		/* LZ4 looks back this far */

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

static bool are_channels(uint32_t n)
{
	return n == 1 || n == 3 || n == 4;
}

void shard_field_infer(struct shard_field *f)
{
	if (!strcmp(f->name, "label") && !f->ndim && f->dtype >= SHARD_U8 && f->dtype <= SHARD_I64) {
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

/* ---- places ---- */

/*
 * Fields keep the order in which they were given; each starts at a multiple of its element, and of 16
 * if it is 16 bytes or more, so that vector loads may be aligned.
 */

/* The name as it may be shown: it was not checked yet. */
static const char *shown_name(struct shown *out, const struct shard_field *f)
{
	return show_bytes(out, f->name, strnlen(f->name, SHARD_NAME_BYTES));
}

static int field_bytes(struct shard_field *f, struct shard_error *err)
{
	uint64_t bytes = shard_dtype_bytes(f->dtype);
	struct shown s;

	if (!bytes)
		return error_set(err, SHARD_E_ARGUMENT, "field '%s': dtype %u is not one of enum shard_dtype",
				 shown_name(&s, f), f->dtype);
	if (f->ndim > SHARD_DIMS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "field '%s': %u dimensions; must be at most %d",
				 shown_name(&s, f), f->ndim, SHARD_DIMS_MAX);
	for (uint32_t d = 0; d < f->ndim; d++) {
		if (!f->shape[d])
			return error_set(err, SHARD_E_ARGUMENT, "field '%s': shape[%u] is 0; must be 1 or more",
					 shown_name(&s, f), d);
		if (!mul_fits(bytes, f->shape[d], &bytes) || bytes > SHARD_STRIDE_MAX)
			return error_set(err, SHARD_E_ARGUMENT,
					 "field '%s': its shape needs more than the limit of %" PRIu64 " bytes in a "
					 "record",
					 shown_name(&s, f), SHARD_STRIDE_MAX);
	}
	f->bytes = bytes;
	return SHARD_OK;
}

static uint32_t stride_align_log2(uint64_t record_bytes, uint32_t align)
{
	if (align == 4096)
		return 12;
	if (record_bytes >= 16384)
		return align_up(record_bytes, 512) - record_bytes <= record_bytes / 100 ? 9 : 7;
	return record_bytes >= 1024 ? 6 : 4;
}

int shard_schema_lay_out(struct shard_schema *schema, uint32_t align, struct shard_error *err)
{
	struct shard_schema copy = *schema, *s = &copy; /* the caller's stays as it is if this fails */
	struct shown shown;
	int rc;

	if (align && align != 4096)
		return error_set(err, SHARD_E_ARGUMENT, "align is %u; must be 0 or 4096", align);
	if (s->group_count < 1 || s->group_count > SHARD_GROUPS_MAX || s->field_count < 1 ||
	    s->field_count > SHARD_FIELDS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "%u groups and %u fields; must be 1 to %d and 1 to %d",
				 s->group_count, s->field_count, SHARD_GROUPS_MAX, SHARD_FIELDS_MAX);
	for (uint32_t g = 0; g < s->group_count; g++)
		s->group[g].record_bytes = 0;
	for (uint32_t i = 0; i < s->field_count; i++) {
		struct shard_field *f = &s->field[i];
		size_t item = shard_dtype_bytes(f->dtype);
		struct shard_group *g;

		rc = field_bytes(f, err);
		if (rc)
			return rc;
		if (f->group >= s->group_count)
			return error_set(err, SHARD_E_ARGUMENT,
					 "field '%s': group is %u; must be below %u, the number of groups",
					 shown_name(&shown, f), f->group, s->group_count);
		g = &s->group[f->group];
		f->offset = align_up(g->record_bytes, f->bytes >= 16 ? 16 : item);
		g->record_bytes = f->offset + f->bytes;
	}
	for (uint32_t i = 0; i < s->group_count; i++) {
		struct shard_group *g = &s->group[i];

		g->align_log2 = stride_align_log2(g->record_bytes, align);
		g->stride = align_up(g->record_bytes, UINT64_C(1) << g->align_log2);
		g->unit_records = 1; /* or the smallest power of two that makes enough bytes */
		while (g->unit_records * max_u64(g->stride, 1) < (g->codec == SHARD_RAW ? UNIT_BYTES : CHUNK_BYTES))
			g->unit_records *= 2;
		g->chunk_records = g->codec == SHARD_RAW ? 0 : g->unit_records;
	}
	for (uint32_t i = 0; i < s->field_count; i++)
		s->field[i].stride = s->group[s->field[i].group].stride;
	rc = schema_check(s, err); /* the same judge as for files; its sentences name field and limit */
	if (rc && err)
		err->status = SHARD_E_ARGUMENT;
	if (rc)
		return SHARD_E_ARGUMENT;
	*schema = copy;
	return SHARD_OK;
}

const struct shard_field *shard_schema_find(const struct shard_schema *s, const char *name)
{
	for (uint32_t i = 0; i < s->field_count; i++)
		if (!strncmp(s->field[i].name, name, SHARD_NAME_BYTES))
			return &s->field[i];
	return NULL;
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
