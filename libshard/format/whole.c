/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole.c - images that have a height and width of their own: format/SHARD.md 2.11
 *
 * Pure.  A size in a record is bytes from outside: it is used after shard_image_size() has looked
 * at it.
 */
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/format/record.h"
#include "shard_pack.h"

static bool is_whole(const struct shard_field *f)
{
	return f->kind == SHARD_RAGGED && f->dtype == SHARD_U8 && f->semantic == SHARD_IMAGE &&
	       f->layout == SHARD_HWC && f->ndim == 2 && f->ragged_axes == 1 && f->shape[1] >= 1 &&
	       f->shape[1] <= SHARD_TALLY_CHANNELS_MAX;
}

uint32_t shard_image_size_field(const struct shard_schema *schema, uint32_t field)
{
	char name[SHARD_NAME_BYTES + sizeof("_size")];

	if (field >= schema->field_count || !is_whole(&schema->field[field]))
		return SHARD_FIELDS_MAX;
	snprintf(name, sizeof(name), "%.*s_size", SHARD_NAME_BYTES - 1, schema->field[field].name);
	for (uint32_t i = 0; i < schema->field_count; i++) {
		const struct shard_field *f = &schema->field[i];

		if (!strncmp(f->name, name, sizeof(f->name)) && f->kind == SHARD_TENSOR && f->dtype == SHARD_U32 &&
		    f->ndim == 1 && f->shape[0] == 2)
			return i;
	}
	return SHARD_FIELDS_MAX;
}

int shard_image_size(const struct shard_schema *schema, uint32_t field, const void *const *group, uint64_t record,
		     struct shard_size *size, struct shard_error *err)
{
	uint32_t size_field = shard_image_size_field(schema, field);
	const struct shard_field *f, *length, *of;
	const uint8_t *at, *pixels;
	int rc;

	if (size_field >= schema->field_count)
		return error_set(err, SHARD_E_ARGUMENT, "field %u: is no whole image, so it has no size", field);
	f = &schema->field[field];
	length = &schema->field[f->length_field];
	of = &schema->field[size_field];
	at = (const uint8_t *)group[of->group] + of->offset;
	pixels = (const uint8_t *)group[length->group] + length->offset;
	rc = record_check_length(f, 0, load32(pixels), record, err);
	if (!rc)
		rc = record_check_size(f, at, pixels, record, err);
	if (!rc)
		*size = (struct shard_size){load32(at), load32(at + 4)};
	return rc;
}
