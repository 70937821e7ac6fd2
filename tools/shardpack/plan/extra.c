/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extra.c - further columns of a table that become fields beside image and label
 */
#include "tools/shardpack/plan/extra.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shardpack/plan/raw_schema.h"

bool extra_settle(struct recipe *r, const char *text, char *why, size_t why_bytes)
{
	struct raw_schema s;
	uint32_t i;

	if (!raw_schema_parse(text, &s, why, why_bytes))
		return false;
	if (s.field_count > RECIPE_NAMED_MAX) {
		snprintf(why, why_bytes, "%u columns; the limit is %d", s.field_count, RECIPE_NAMED_MAX);
		return false;
	}
	for (i = 0; i < s.field_count; i++) {
		const struct raw_field *f = &s.field[i];

		if (f->ndim || f->swap || f->dtype == SHARD_F16 || f->dtype == SHARD_BF16 || strcmp(f->name, "-") == 0 ||
		    strcmp(f->name, "image") == 0 || strcmp(f->name, "label") == 0) {
			snprintf(why, why_bytes, "'%s': a column must be NAME:TYPE, one number of u8 to i64, f32, f64 or bool, and not image or label",
				 f->name);
			return false;
		}
		r->field[i] = (struct shard_field){.dtype = f->dtype};
		memcpy(r->field[i].name, f->name, sizeof(f->name));
		strcpy(r->from[i].from, f->name);
	}
	r->field_count = s.field_count;
	return true;
}

size_t extra_bytes(const struct recipe *r)
{
	size_t bytes = 0;
	uint32_t i;

	for (i = 0; i < r->field_count; i++)
		bytes += r->from[i].kind == FIELD_COLUMN ? shard_dtype_bytes(r->field[i].dtype) : 0;
	return bytes;
}

static bool signed_value(const char *text, size_t bytes, uint8_t out[8])
{
	long long value, most = bytes == 8 ? INT64_MAX : (INT64_C(1) << (8 * bytes - 1)) - 1;
	char *end;

	errno = 0;
	value = strtoll(text, &end, 10);
	memcpy(out, &value, 8);
	return !errno && end != text && !*end && value <= most && value >= -most - 1;
}

static bool unsigned_value(const char *text, size_t bytes, uint8_t out[8])
{
	unsigned long long value, most = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	memcpy(out, &value, 8);
	return !errno && end != text && !*end && value <= most && text[0] != '-';
}

static bool float_value(const char *text, uint32_t dtype, uint8_t out[8])
{
	char *end;
	double d;
	float f;

	errno = 0;
	if (dtype == SHARD_F32) {
		f = strtof(text, &end);
		d = f;
		memcpy(out, &f, sizeof(f));
	} else {
		d = strtod(text, &end);
		memcpy(out, &d, sizeof(d));
	}
	return end != text && !*end && !(errno == ERANGE && isinf(d)); /* "inf" is one, 1e999 is none */
}

bool extra_value(const struct shard_field *column, const char *text, uint8_t out[8])
{
	size_t bytes = shard_dtype_bytes(column->dtype);

	memset(out, 0, 8);
	if (strchr(" \t\n\v\f\r+", text[0])) /* what strto...() would pass over; and nothing at all */
		return false;
	switch (column->dtype) {
	case SHARD_U8: case SHARD_U16: case SHARD_U32: case SHARD_U64:
		return unsigned_value(text, bytes, out);
	case SHARD_I8: case SHARD_I16: case SHARD_I32: case SHARD_I64:
		return signed_value(text, bytes, out);
	case SHARD_BOOL:
		out[0] = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
		return out[0] || strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
	default:
		return float_value(text, column->dtype, out);
	}
}
