/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_field.c - see file_field.h
 */
#include "tools/shardpack/convert/file_field.h"

#include <stdbool.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/shardpack/plan/plan.h"

static void copy_swapped(uint8_t *out, const uint8_t *in, size_t bytes, size_t item)
{
	for (size_t i = 0; i < bytes; i += item)
		for (size_t k = 0; k < item; k++)
			out[i + k] = in[i + item - 1 - k];
}

/* An integer of a file as i64.  A u64 that does not fit is negative, and so no class. */
static int64_t load_integer(const uint8_t *in, uint32_t dtype, bool swap)
{
	size_t item = shard_dtype_bytes(dtype);
	bool is_signed = dtype == SHARD_I8 || dtype == SHARD_I16 || dtype == SHARD_I32 || dtype == SHARD_I64;
	uint64_t value = 0;

	for (size_t k = 0; k < item; k++)
		value |= (uint64_t)in[swap ? item - 1 - k : k] << (8 * k);
	if (is_signed && item < 8 && value >> (8 * item - 1))
		value |= ~UINT64_C(0) << (8 * item);
	return (int64_t)value;
}

void file_field_convert(const struct shard_schema *schema, uint32_t field, const struct plan_slice *s,
			const uint8_t *in, uint64_t have, uint8_t *const *group)
{
	const struct shard_field *to = &schema->field[field];
	size_t item = shard_dtype_bytes(s->dtype);
	uint8_t *out = group[to->group] + to->offset;

	if (s->dtype != to->dtype) {
		for (size_t i = 0; i < have / item; i++) {
			int64_t value = load_integer(in + i * item, s->dtype, s->swap);

			memcpy(out + 8 * i, &value, 8);
		}
	} else if (s->swap && item > 1) {
		copy_swapped(out, in, (size_t)have, item);
	} else {
		memcpy(out, in, (size_t)have);
	}
	if (to->kind == SHARD_RAGGED) {
		const struct shard_field *length = &schema->field[to->length_field];
		uint32_t items = (uint32_t)(have / item);

		memset(out + have, 0, (size_t)(to->bytes - have)); /* ragged fields are not widened */
		memcpy(group[length->group] + length->offset, &items, sizeof(items));
	}
}
