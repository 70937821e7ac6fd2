/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out.c - write one JSON document to a stream
 *
 * Numbers are printed in the C locale, which a program has until it calls setlocale(); no
 * tool does.  64-bit integers are written in full: they are JSON, though a reader that
 * keeps numbers as doubles rounds those above 2^53.
 */
#include "tools/common/json_out.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "libshard/base/utf8.h"
#include "tools/common/human.h"

static void put_bytes(struct json_out *j, const char *text, size_t text_bytes)
{
	if (!ferror(j->out)) /* another try may wait again for a pipe that nobody reads */
		fwrite(text, 1, text_bytes, j->out);
}

static void put(struct json_out *j, const char *text)
{
	put_bytes(j, text, strlen(text));
}

static void new_line(struct json_out *j)
{
	static const char spaces[] = "\n                                ";

	static_assert(sizeof(spaces) - 2 >= 2 * JSON_DEPTH_MAX, "indents any depth");
	put_bytes(j, spaces, 1 + 2 * (size_t)j->depth);
}

static size_t plain_run(const char *text, size_t text_bytes)
{
	size_t i = 0;

	while (i < text_bytes && text[i] >= 0x20 && text[i] < 0x7f && text[i] != '"' && text[i] != '\\')
		i++;
	return i;
}

static void put_string(struct json_out *j, const char *text, size_t text_bytes)
{
	uint32_t code_point;
	char escape[16];

	put(j, "\"");
	for (size_t i = 0; i < text_bytes;) {
		size_t length = plain_run(text + i, text_bytes - i);

		if (length) {
			put_bytes(j, text + i, length);
			i += length;
			continue;
		}
		length = utf8_character(text + i, text_bytes - i, &code_point);
		if (!length) {
			put(j, "\xef\xbf\xbd"); /* U+FFFD */
			length = 1;
		} else if (code_point == '"' || code_point == '\\') {
			put_bytes(j, (char[]){'\\', text[i]}, 2);
		} else if (utf8_is_hidden(code_point)) {
			/* Most need no escape in JSON, but this may be read on a terminal.  UTF-16 has two for some. */
			if (code_point < 0x10000)
				snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)code_point);
			else
				snprintf(escape, sizeof(escape), "\\u%04x\\u%04x",
					 0xd7c0 + (unsigned)(code_point >> 10),
					 0xdc00 + (unsigned)(code_point & 0x3ff));
			put(j, escape);
		} else {
			put_bytes(j, text + i, length);
		}
		i += length;
	}
	put(j, "\"");
}

/* Comma, place and key: what stands before any value. */
static void begin_value(struct json_out *j, const char *key)
{
	struct json_level *level;

	if (!j->depth) {
		assert(!key && !j->has_value);
		j->has_value = true;
		return;
	}
	level = &j->levels[j->depth - 1];
	assert(level->is_object == (key != NULL));
	if (level->has_item)
		put(j, level->is_line ? ", " : ",");
	if (!level->is_line)
		new_line(j);
	level->has_item = true;
	if (key) {
		put_string(j, key, strlen(key));
		put(j, ": ");
	}
}

static void open_container(struct json_out *j, const char *key, bool is_object, bool is_line)
{
	begin_value(j, key);
	assert(j->depth < JSON_DEPTH_MAX);
	j->levels[j->depth] = (struct json_level){
		.is_object = is_object,
		.is_line = is_line || (j->depth && j->levels[j->depth - 1].is_line),
	};
	j->depth++;
	put(j, is_object ? "{" : "[");
}

void json_out_start(struct json_out *j, FILE *out)
{
	memset(j, 0, sizeof(*j));
	j->out = out;
}

void json_out_object(struct json_out *j, const char *key)
{
	open_container(j, key, true, false);
}

void json_out_object_line(struct json_out *j, const char *key)
{
	open_container(j, key, true, true);
}

void json_out_array(struct json_out *j, const char *key)
{
	open_container(j, key, false, false);
}

void json_out_array_line(struct json_out *j, const char *key)
{
	open_container(j, key, false, true);
}

void json_out_end(struct json_out *j)
{
	struct json_level *level;

	assert(j->depth);
	j->depth--;
	level = &j->levels[j->depth];
	if (level->has_item && !level->is_line)
		new_line(j);
	put(j, level->is_object ? "}" : "]");
}

void json_out_string_bytes(struct json_out *j, const char *key, const char *text, size_t text_bytes)
{
	begin_value(j, key);
	put_string(j, text, text_bytes);
}

void json_out_string(struct json_out *j, const char *key, const char *text)
{
	json_out_string_bytes(j, key, text, strlen(text));
}

void json_out_u64(struct json_out *j, const char *key, uint64_t value)
{
	char text[24];

	begin_value(j, key);
	snprintf(text, sizeof(text), "%" PRIu64, value);
	put(j, text);
}

void json_out_i64(struct json_out *j, const char *key, int64_t value)
{
	char text[24];

	begin_value(j, key);
	snprintf(text, sizeof(text), "%" PRId64, value);
	put(j, text);
}

void json_out_double(struct json_out *j, const char *key, double value)
{
	char text[32];

	begin_value(j, key);
	if (isfinite(value))
		snprintf(text, sizeof(text), "%.17g", value);
	else
		strcpy(text, "null");
	put(j, text);
}

void json_out_bool(struct json_out *j, const char *key, bool value)
{
	begin_value(j, key);
	put(j, value ? "true" : "false");
}

void json_out_null(struct json_out *j, const char *key)
{
	begin_value(j, key);
	put(j, "null");
}

void json_out_finish(struct json_out *j)
{
	assert(!j->depth && j->has_value);
	put(j, "\n");
	fflush(j->out);
}
