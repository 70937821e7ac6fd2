/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_texts.c - lists of texts: captions of which one, each or all are packed
 */
#include "tools/shardpack/plan/plan.h"

#include <inttypes.h>
#include <string.h>

#include "shard_inspect.h"

/* Text `idx` of the list, into `room` bytes, of which it leaves the rest zero. */
static bool take_one(const json_t *text, size_t idx, uint32_t room, uint8_t *out, size_t *bytes,
		     struct field_verdict *v)
{
	if (!json_is_string(text))
		return field_verdict_bad(v, SHARD_MISS_UNSUPPORTED, "element %zu of the list is no text", idx);
	*bytes = json_string_length(text); /* without a zero byte: JSON is read so */
	if (*bytes > room)
		return field_verdict_bad(v, SHARD_MISS_LIMIT,
					 "text %zu has %zu bytes; the limit is max=%" PRIu32
					 ", raise it or shorten the text",
					 idx, *bytes, room);
	memset(out, 0, room);
	memcpy(out, json_string_value(text), *bytes);
	return true;
}

bool field_texts_take(const struct shard_field *f, const struct field_source *s, const json_t *value, uint8_t *out,
		      size_t *out_bytes, struct field_verdict *v)
{
	bool is_list = json_is_array(value), all = s->pick == PICK_ALL;
	size_t count = is_list ? json_array_size(value) : 1, bytes = 0, first = 0;
	uint32_t room = f->shape[f->ndim - 1];

	if (s->pick == PICK_EACH && count && is_list)
		return field_verdict_bad(v, SHARD_MISS_UNSUPPORTED, "a list within the list, and no text");
	if (s->pick == PICK_EACH && json_is_string(value) && json_string_length(value) > room)
		return field_verdict_bad(v, SHARD_MISS_LIMIT,
					 "%zu bytes; the limit is max=%" PRIu32 ", raise it or shorten the text",
					 json_string_length(value), room);
	if (!is_list && !json_is_string(value))
		return field_verdict_bad(v, SHARD_MISS_UNSUPPORTED, "neither a text nor a list of texts");
	if (all && count > f->shape[0])
		return field_verdict_bad(v, SHARD_MISS_LIMIT, "%zu texts; the limit is count=%" PRIu32 ", raise it",
					 count, f->shape[0]);
	if (!all && !count && !s->optional)
		return field_verdict_bad(v, SHARD_MISS_EMPTY, "a list without a text; add one, or say optional");
	for (size_t i = 0; i < count; i++) {
		const json_t *text = is_list ? json_array_get(value, i) : value;

		if (!all && i && !json_is_string(text))
			return field_verdict_bad(v, SHARD_MISS_UNSUPPORTED, "element %zu of the list is no text", i);
		if ((all || !i) && !take_one(text, i, room, out + i * room, &bytes, v))
			return false;
		first = i ? first : bytes;
	}
	*out_bytes = all ? count * room : first;
	return true;
}

void field_texts_add(const struct shard_field *f, const uint8_t *rows, size_t bytes, struct text *out)
{
	uint32_t room = f->shape[1];

	text_add(out, " =", 2);
	for (size_t at = 0; at < bytes; at += room) {
		text_hex(out, rows + at, strnlen((const char *)rows + at, room));
		text_add(out, "00", 2);
	}
}

/* The bytes of the text that begins at hex digit `at`. */
static size_t text_at(const struct field_part *part, size_t at)
{
	size_t end = at;

	while (end < part->text_bytes && (part->text[end] != '0' || part->text[end + 1] != '0'))
		end += 2;
	return (end - at) / 2;
}

static bool texts_fit(const struct shard_field *f, const struct field_part *part)
{
	size_t bytes;
	uint32_t count = 0;

	for (size_t at = 0; at < part->text_bytes; at += 2 * (bytes + 1)) {
		bytes = text_at(part, at);
		if (++count > f->shape[0] || bytes > f->shape[1] || at + 2 * bytes == part->text_bytes)
			return false;
	}
	return true;
}

bool field_texts_fit(const struct shard_field *f, const struct field_source *s, const struct field_part *part)
{
	uint64_t row = shard_dtype_bytes(f->dtype) * recipe_field_items(f);

	if (s->pick == PICK_ALL)
		return texts_fit(f, part);
	if (f->kind == SHARD_TENSOR || part->bytes > row)
		return part->bytes == row;
	return part->bytes % (row / f->shape[0]) == 0;
}

size_t field_texts_put(const struct shard_field *f, const struct field_part *part, uint8_t *out)
{
	size_t bytes, used = 0;

	for (size_t at = 0; at < part->text_bytes; at += 2 * (bytes + 1), used += f->shape[1]) {
		bytes = text_at(part, at);
		text_unhex(part->text + at, 2 * bytes, out + used, bytes);
	}
	return used;
}
