/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_part.c - where a field of one input is, as a token of the input's line in a plan
 */
#include "tools/shardpack/plan/field_part.h"

#include <inttypes.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/text.h"
#include "tools/shardpack/plan/field.h"

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

/* The number from *at to the next comma, or to the end, and past that comma. */
static bool take_number(const char **at, const char *end, uint64_t *out)
{
	const char *comma = memchr(*at, ',', (size_t)(end - *at)), *stop = comma ? comma : end;
	bool ok = text_u64(*at, (size_t)(stop - *at), out);

	*at = comma ? comma + 1 : end;
	return ok;
}

bool field_part_next_shape(const struct field_part *part, const char **at, struct field_shape *out, bool *wrong)
{
	const char *end = part->text + part->text_bytes;
	uint64_t value = 0;

	*wrong = false;
	if (*at == end)
		return false;
	*wrong = !take_number(at, end, &out->offset) || !take_number(at, end, &out->bytes) ||
		 !take_number(at, end, &value) || value > UINT32_MAX || (*at == end && end[-1] == ',');
	out->value = (uint32_t)value;
	return !*wrong;
}

bool field_part_shapes_fit(const struct field_part *part, uint64_t file_bytes, uint64_t most)
{
	const char *at = part->text;
	struct field_shape shape;
	bool wrong;

	while (field_part_next_shape(part, &at, &shape, &wrong))
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

/* "640x480", or nothing; what follows begins at `stop`. */
static bool read_size(const char *token, const char *stop, struct field_part *out)
{
	const char *x = memchr(token, 'x', (size_t)(stop - token));
	uint64_t width, height;

	if (stop == token)
		return true;
	if (!x || !text_u64(token, (size_t)(x - token), &width) || !text_u64(x + 1, (size_t)(stop - x - 1), &height) ||
	    !width || width > UINT32_MAX || !height || height > UINT32_MAX)
		return false;
	out->width = (uint32_t)width;
	out->height = (uint32_t)height;
	return true;
}

static bool read_value(const char *token, const char *equals, const char *end, struct field_part *out)
{
	out->kind = FIELD_PART_VALUE;
	out->text = equals + 1;
	out->text_bytes = (size_t)(end - out->text);
	out->bytes = out->text_bytes / 2;
	return read_size(token, equals, out) && out->text_bytes % 2 == 0;
}

static bool read_shapes(const char *token, const char *mark, const char *end, struct field_part *out)
{
	const char *at = mark + 1;

	out->kind = FIELD_PART_SHAPES;
	if (!read_size(token, mark, out) || !take_number(&at, end, &out->file))
		return false;
	out->text = at;
	out->text_bytes = (size_t)(end - at);
	return out->text_bytes || end[-1] != ',';
}

bool field_part_read(const char *token, size_t bytes, struct field_part *out)
{
	const char *first = memchr(token, ',', bytes), *end = token + bytes, *second;
	const char *equals = memchr(token, '=', bytes), *mark = memchr(token, '@', bytes);

	*out = (struct field_part){.kind = FIELD_PART_NONE};
	if (bytes == 1 && token[0] == '-')
		return true;
	if (mark)
		return read_shapes(token, mark, end, out);
	if (equals)
		return read_value(token, equals, end, out);
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
