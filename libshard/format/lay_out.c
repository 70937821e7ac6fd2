/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lay_out.c - from what a user wants to store to where its bytes go
 *
 * Pure.  The choices of format/SHARD.md 2.9.  Fields keep the order in which they were given; each
 * starts at a multiple of its element, and of 16 if it is 16 bytes or more, so that vector loads
 * may be aligned.
 */
#include <inttypes.h>

#include "format/shard_format.h"
#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/format/schema.h"
#include "shard_pack.h"

#define UNIT_BYTES  4096u  /* a leaf hash over less would cost more than 0.2 % of space */
#define CHUNK_BYTES 65536u /* LZ4 looks back this far */

/* The name as it may be shown: nobody looked at it yet. */
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

/* Smallest power of two of strides that makes at least `bytes`. */
static uint32_t records_for(uint64_t stride, uint64_t bytes)
{
	uint32_t records = 1;

	while (records * stride < bytes)
		records *= 2;
	return records;
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
		g->unit_records =
			records_for(g->stride ? g->stride : 1, g->codec == SHARD_RAW ? UNIT_BYTES : CHUNK_BYTES);
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
