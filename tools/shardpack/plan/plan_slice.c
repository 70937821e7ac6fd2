/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_slice.c - a line "slice ..." of a plan, believing nothing
 */
#include "tools/shardpack/plan/plan.h"

#include "libshard/base/words.h"
#include "shard_inspect.h"
#include "tools/common/text.h"

bool plan_take_dtype(struct words *l, uint8_t *out, uint8_t *swap)
{
	struct word w;
	uint32_t dtype;

	if (!words_take(l, ' ', &w))
		return false;
	*swap = w.bytes && w.text[0] == '>';
	dtype = text_named(shard_dtype_name, w.text + *swap, w.bytes - *swap, SHARD_U8);
	*out = (uint8_t)dtype;
	return dtype != TEXT_NO_NAME;
}

/* Labels become i64.  Tokens of 8 bits become u16, those of 64 bits u32, as all of them fit. */
static bool converts(const struct plan_slice *s, const struct shard_field *f)
{
	if (f->semantic == SHARD_TOKENS)
		return (s->dtype == SHARD_U8 && f->dtype == SHARD_U16) ||
		       (s->dtype == SHARD_U64 && f->dtype == SHARD_U32);
	return s->dtype <= SHARD_I64 && f->dtype == SHARD_I64;
}

/* All inputs of a slice must lie in it, with the dtype that they have in the file. */
static bool slice_fits(const struct plan *plan, const struct plan_slice *s)
{
	const struct shard_field *f = &plan->recipe.field[s->field];
	uint64_t item = shard_dtype_bytes(s->dtype), last;

	if (!s->count || s->count > PLAN_INPUTS_MAX || s->first > PLAN_INPUTS_MAX - s->count ||
	    s->offset > plan->file[s->file].bytes || s->bytes > plan->file[s->file].bytes - s->offset || !s->bytes)
		return false;
	if (s->stride && s->count - 1 > s->bytes / s->stride)
		return false;
	last = (s->count - 1) * s->stride; /* at most s->bytes */
	if (s->dtype != f->dtype && !converts(s, f))
		return false;
	if (last >= s->bytes)
		return false;
	if (f->kind == SHARD_RAGGED)
		return s->bytes - last <= recipe_field_items(f) * item && (s->bytes - last) % item == 0;
	return s->bytes - last == recipe_field_items(f) * item;
}

const char *plan_slice_read(const struct plan *plan, struct words *l, struct plan_slice *s)
{
	uint64_t field, file;

	if (!words_u64(l, ' ', SHARD_FIELDS_MAX, &field) || field >= plan->recipe.field_count ||
	    !words_u64(l, ' ', PLAN_INPUTS_MAX, &s->first) || !words_u64(l, ' ', PLAN_INPUTS_MAX, &s->count) ||
	    !words_u64(l, ' ', PLAN_FILES_MAX, &file) || file >= plan->file_count ||
	    !words_u64(l, ' ', PLAN_BYTES_MAX, &s->offset) || !words_u64(l, ' ', PLAN_BYTES_MAX, &s->stride) ||
	    !words_u64(l, ' ', PLAN_BYTES_MAX, &s->bytes) || !plan_take_dtype(l, &s->dtype, &s->swap) || !words_done(l))
		return "not a slice within a file";
	s->field = (uint16_t)field;
	s->file = (uint32_t)file;
	return slice_fits(plan, s) ? NULL : "a slice does not fit its file or its field";
}
