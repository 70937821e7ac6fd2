/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_parts.c - the tokens of a plan that say where an input's fields are, believing nothing
 */
#include "tools/shardpack/plan/plan_parts.h"

#include <string.h>

#include "tools/shardpack/plan/field_part.h"

bool plan_path_decode(const char *text, size_t bytes, char *out)
{
	return bytes < PLAN_ENCODED_PATH_BYTES && text_decode(text, bytes, true, out) > 0 && strlen(out) < PLAN_PATH_BYTES_MAX &&
	       text_stays_below(out);
}

bool plan_has_bytes(const struct plan *p, uint64_t file, uint64_t offset, uint64_t bytes)
{
	return file < p->file_count && offset <= p->file[file].bytes && bytes <= p->file[file].bytes - offset;
}

/* A value has its bytes in hex, and as many as such a field may have. */
static bool value_fits(const struct shard_field *f, const struct field_part *part)
{
	uint64_t item = shard_dtype_bytes(f->dtype), row = item * recipe_field_items(f);

	if (strspn(part->text, "0123456789abcdef") < part->text_bytes || part->bytes > row)
		return false;
	if (f->kind == SHARD_TENSOR)
		return part->bytes == row;
	return part->bytes % (row / f->shape[0]) == 0;
}

const char *plan_judge_part(const struct plan *p, uint32_t field, const char *token, size_t bytes, char *path)
{
	const struct field_source *s = &p->recipe.from[field];
	struct field_part part;

	if (!field_part_read(token, bytes, &part) || part.bytes > PLAN_BYTES_MAX)
		return "not a field of an input";
	switch (part.kind) {
	case FIELD_PART_NONE:
		return s->optional ? NULL : "a field that is not optional is missing";
	case FIELD_PART_VALUE:
		return !field_is_picture(s->kind) && value_fits(&p->recipe.field[field], &part) ? NULL : "not a value of its field";
	case FIELD_PART_FILE:
		return plan_path_decode(part.text, part.text_bytes, path) ? NULL : "the path of a field does not stay below the source";
	case FIELD_PART_MEMBER:
		return plan_has_bytes(p, part.file, part.offset, part.bytes) ? NULL : "a field is not a part of a file";
	}
	return NULL;
}
