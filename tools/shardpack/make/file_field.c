/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_field.c - the bytes of a field as they stand in a file, made those of a record
 */
#include "tools/shardpack/make/make.h"

#include <stdbool.h>
#include <string.h>

#include "shard.h"
#include "tools/shardpack/parse/integer.h"
#include "tools/shardpack/plan/plan.h"

static void copy_swapped(uint8_t *out, const uint8_t *in, size_t bytes, size_t item)
{
	for (size_t i = 0; i < bytes; i += item)
		for (size_t k = 0; k < item; k++)
			out[i + k] = in[i + item - 1 - k];
}

void file_field_convert(const struct shard_schema *schema, uint32_t field, const struct plan_slice *s,
			const uint8_t *in, uint64_t have, uint8_t *const *group)
{
	const struct shard_field *to = &schema->field[field];
	size_t item = shard_dtype_bytes(s->dtype), items = (size_t)have / item, wide = shard_dtype_bytes(to->dtype);
	uint8_t *out = group[to->group] + to->offset;
	bool is_signed = integer_is_signed(s->dtype);

	if (s->dtype != to->dtype) {
		/* the plan found that each fits; a u64 that is no class becomes negative */
		for (size_t i = 0; i < items; i++)
			integer_store(out + wide * i, wide,
				      (uint64_t)integer_load(in + i * item, item, is_signed, s->swap));
	} else if (s->swap && item > 1) {
		copy_swapped(out, in, (size_t)have, item);
	} else {
		memcpy(out, in, (size_t)have);
	}
	if (to->kind == SHARD_RAGGED) {
		const struct shard_field *length = &schema->field[to->length_field];
		uint32_t count = (uint32_t)items;

		memset(out + items * wide, 0, (size_t)to->bytes - items * wide);
		memcpy(group[length->group] + length->offset, &count, sizeof(count));
	}
}
