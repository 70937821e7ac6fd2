/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_part.c - where a field of one input is, as a token of the input's line in a plan
 */
#include "tools/shardpack/plan/field_part.h"

#include <inttypes.h>
#include <string.h>

#include "tools/common/text.h"

void field_part_add_none(struct text *out)
{
	text_add(out, " -", 2);
}

void field_part_add_value(struct text *out, const void *value, size_t bytes)
{
	text_add(out, " =", 2);
	text_hex(out, value, bytes);
}

void field_part_add_file(struct text *out, uint64_t bytes, const char *path)
{
	text_format(out, " %" PRIu64 ",", bytes);
	text_encode(out, path, strlen(path), true);
}

void field_part_add_member(struct text *out, uint64_t offset, uint64_t bytes, uint64_t file)
{
	text_format(out, " %" PRIu64 ",%" PRIu64 ",%" PRIu64, offset, bytes, file);
}

bool field_part_read(const char *token, size_t bytes, struct field_part *out)
{
	const char *first = memchr(token, ',', bytes), *end = token + bytes, *second;

	*out = (struct field_part){.kind = FIELD_PART_NONE};
	if (bytes == 1 && token[0] == '-')
		return true;
	if (bytes && token[0] == '=') {
		out->kind = FIELD_PART_VALUE;
		out->text = token + 1;
		out->text_bytes = bytes - 1;
		out->bytes = out->text_bytes / 2;
		return out->text_bytes % 2 == 0;
	}
	if (!first)
		return false;
	second = memchr(first + 1, ',', (size_t)(end - first - 1));
	if (!second) {
		out->kind = FIELD_PART_FILE;
		out->text = first + 1;
		out->text_bytes = (size_t)(end - out->text);
		return text_u64(token, (size_t)(first - token), &out->bytes) && out->text_bytes > 0;
	}
	out->kind = FIELD_PART_MEMBER;
	return text_u64(token, (size_t)(first - token), &out->offset) &&
	       text_u64(first + 1, (size_t)(second - first - 1), &out->bytes) &&
	       text_u64(second + 1, (size_t)(end - second - 1), &out->file);
}
