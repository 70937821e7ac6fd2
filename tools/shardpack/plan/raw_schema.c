/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw_schema.c - the records of a file, as a user describes them
 */
#include "shard_inspect.h"
#include "tools/shardpack/plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/words.h"
#include "tools/common/text.h"

/* "[32,32,3]", all of it; false if it is anything else. */
static bool parse_axes(const char *text, size_t bytes, struct raw_field *f)
{
	struct words axes;

	if (bytes < 3 || text[0] != '[' || text[bytes - 1] != ']')
		return false;
	axes = words_of(text + 1, bytes - 2);
	for (; !words_done(&axes); f->ndim++)
		if (f->ndim == SHARD_DIMS_MAX || !words_u64(&axes, ',', UINT32_MAX, &f->shape[f->ndim]) ||
		    !f->shape[f->ndim])
			return false;
	return true;
}

/* One field, `bytes` long. */
static bool parse_field(const char *text, size_t bytes, struct raw_field *f)
{
	const char *colon = memchr(text, ':', bytes), *type, *bracket;
	size_t type_bytes;

	memset(f, 0, sizeof(*f));
	if (!colon || colon == text || (size_t)(colon - text) >= sizeof(f->name))
		return false;
	memcpy(f->name, text, (size_t)(colon - text));
	type = colon + 1;
	bytes -= (size_t)(type - text);
	f->swap = bytes && *type == '>';
	type += f->swap;
	bytes -= f->swap;
	bracket = memchr(type, '[', bytes);
	type_bytes = bracket ? (size_t)(bracket - type) : bytes;
	f->dtype = text_named(shard_dtype_name, type, type_bytes, SHARD_U8);
	return f->dtype != TEXT_NO_NAME && (!bracket || parse_axes(bracket, bytes - type_bytes, f));
}

static uint64_t field_bytes(const struct raw_field *f)
{
	uint64_t bytes = shard_dtype_bytes(f->dtype);
	for (uint32_t i = 0; i < f->ndim; i++) {
		if (f->shape[i] > RAW_RECORD_BYTES_MAX / bytes)
			return RAW_RECORD_BYTES_MAX + 1;
		bytes *= f->shape[i];
	}
	return bytes;
}

bool raw_schema_parse(const char *text, struct raw_schema *out, char *why, size_t why_bytes)
{
	const char *at = text;

	memset(out, 0, sizeof(*out));
	for (;;) {
		struct raw_field *f = &out->field[out->field_count];
		size_t bytes = 0;
		while (at[bytes] && at[bytes] != ',') {
			bytes += strcspn(at + bytes, ",[");
			if (at[bytes] == '[')
				bytes += strcspn(at + bytes, "]");
		}
		if (out->field_count == 2 * SHARD_FIELDS_MAX || !parse_field(at, bytes, f)) {
			snprintf(why, why_bytes,
				 "'%.*s': a field must be NAME:TYPE or NAME:TYPE[N,...], such as "
				 "image:u8[32,32,3]",
				 (int)(bytes < 100 ? bytes : 100), at);
			return false;
		}
		for (uint32_t i = 0; i < out->field_count; i++)
			if (strcmp(f->name, "-") && !strcmp(f->name, out->field[i].name)) {
				snprintf(why, why_bytes, "field '%s' appears twice", f->name);
				return false;
			}
		f->offset = out->record_bytes;
		out->record_bytes += field_bytes(f);
		out->field_count++;
		if (out->record_bytes > RAW_RECORD_BYTES_MAX) {
			snprintf(why, why_bytes, "a record of more than the limit of %" PRIu64 " bytes",
				 RAW_RECORD_BYTES_MAX);
			return false;
		}
		if (!at[bytes])
			return true;
		at += bytes + 1;
	}
}
