/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_part.c - where a field of one input is, as a token of the input's line in a plan
 */

#include <inttypes.h>
#include <string.h>

#include "shard.h"
#include "tools/common/text.h"
#include "tools/shardpack/plan/plan.h"

void field_part_add_none(struct text *out)
{
	text_add(out, " -", 2);
}

void field_part_add_value(struct text *out, const void *value, size_t bytes)
{
	text_add(out, " =", 2);
	text_hex(out, value, bytes);
}

/* A blank, and the size of the image if it is known. */
static void add_size(struct text *out, uint32_t width, uint32_t height)
{
	text_add(out, " ", 1);
	if (width)
		text_format(out, "%" PRIu32 "x%" PRIu32, width, height);
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

void field_part_add_sized(struct text *out, uint32_t width, uint32_t height, const void *value, size_t bytes)
{
	add_size(out, width, height);
	text_add(out, "=", 1);
	text_hex(out, value, bytes);
}

void field_part_begin_shapes(struct text *out, uint32_t width, uint32_t height, uint32_t file)
{
	add_size(out, width, height);
	text_format(out, "@%" PRIu32, file);
}

void field_part_add_shape(struct text *out, const struct field_shape *shape)
{
	text_format(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu32, shape->offset, shape->bytes, shape->value);
}

bool field_part_next_shape(struct words *c, struct field_shape *out, bool *wrong)
{
	uint64_t value = 0;

	*wrong = false;
	if (!words_rest(c).bytes)
		return false;
	*wrong = !words_u64(c, ',', UINT64_MAX, &out->offset) || !words_u64(c, ',', UINT64_MAX, &out->bytes) ||
		 !words_u64(c, ',', UINT32_MAX, &value) || c->at == c->end;
	out->value = (uint32_t)value;
	return !*wrong;
}

bool field_part_shapes_fit(const struct field_part *part, uint64_t file_bytes, uint64_t most)
{
	struct words c = words_of(part->text, part->text_bytes);
	struct field_shape shape;
	bool wrong;

	while (field_part_next_shape(&c, &shape, &wrong))
		if (shape.offset > file_bytes || shape.bytes > file_bytes - shape.offset || shape.value > most)
			return false;
	return !wrong;
}

bool field_part_is_none(const struct field_part *part, const struct field_source *s)
{
	bool is_text = s->kind == FIELD_TEXT || s->kind == FIELD_BYTES;

	if (!s->optional || part->kind == FIELD_PART_NONE)
		return part->kind == FIELD_PART_NONE;
	return part->kind == FIELD_PART_SHAPES ? !part->text_bytes : is_text && !part->bytes;
}

/* "640x480", or nothing. */
static bool read_size(struct word w, struct field_part *out)
{
	struct words c = words_of(w.text, w.bytes);
	uint64_t width, height;

	if (!w.bytes)
		return true;
	if (!words_u64(&c, 'x', UINT32_MAX, &width) || !words_u64(&c, 'x', UINT32_MAX, &height) || !words_done(&c))
		return false;
	out->width = (uint32_t)width;
	out->height = (uint32_t)height;
	return width && height;
}

/* What begins with a number: a file, or a part of one. */
static bool read_place(struct words *c, struct field_part *out)
{
	uint64_t first;

	if (!words_u64(c, ',', UINT64_MAX, &first) || c->at == c->end || words_done(c))
		return false;
	if (!memchr(c->at, ',', (size_t)(c->end - c->at))) {
		out->kind = FIELD_PART_FILE;
		out->bytes = first;
		return true;
	}
	out->kind = FIELD_PART_MEMBER;
	out->offset = first;
	return words_u64(c, ',', UINT64_MAX, &out->bytes) && words_u64(c, ',', UINT64_MAX, &out->file) && words_done(c);
}

bool field_part_read(const char *token, size_t bytes, struct field_part *out)
{
	struct words c = words_of(token, bytes);
	bool shapes = memchr(token, '@', bytes), value = memchr(token, '=', bytes), good;
	struct word size;

	*out = (struct field_part){.kind = FIELD_PART_NONE};
	if (bytes == 1 && token[0] == '-')
		return true;
	if (shapes) {
		out->kind = FIELD_PART_SHAPES;
		good = words_take(&c, '@', &size) && read_size(size, out) &&
		       words_u64(&c, ',', UINT64_MAX, &out->file) && c.at != c.end;
	} else if (value) {
		out->kind = FIELD_PART_VALUE;
		good = words_take(&c, '=', &size) && read_size(size, out) && words_rest(&c).bytes % 2 == 0;
		out->bytes = words_rest(&c).bytes / 2;
	} else {
		good = read_place(&c, out);
	}
	out->text = words_rest(&c).text;
	out->text_bytes = words_rest(&c).bytes;
	return good;
}

bool field_part_next(const struct shard_field *f, const struct field_source *s, const char **at, struct field_part *out)
{
	size_t bytes;

	if (s->kind == FIELD_LENGTH)
		return false;
	if (s->column) {
		*at += **at == '='; /* the first of them */
		bytes = 2 * shard_dtype_bytes(f->dtype);
		*out = (struct field_part){
			.kind = FIELD_PART_VALUE, .text = *at, .text_bytes = bytes, .bytes = bytes / 2};
	} else {
		bytes = strcspn(*at, " \n");
		field_part_read(*at, bytes, out);
	}
	*at += bytes;
	*at += **at == ' ';
	return true;
}
