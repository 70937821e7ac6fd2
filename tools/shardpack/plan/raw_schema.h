/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw_schema.h - the records of a file, as a user describes them
 *
 * Fields in the order of the bytes: name, dtype, and in brackets the axes, if there are any.  '>'
 * before a dtype says that the file has its bytes in big-endian order; the name '-' passes over
 * bytes.  Pure.
 */
#ifndef SHARD_PLAN_RAW_SCHEMA_H
#define SHARD_PLAN_RAW_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"

#define RAW_RECORD_BYTES_MAX (UINT64_C(1) << 40)

struct raw_field {
	char name[SHARD_NAME_BYTES]; /* "-": passed over */
	uint32_t dtype, ndim;
	bool swap;
	uint64_t shape[SHARD_DIMS_MAX];
	uint64_t offset; /* from the start of the record */
};

struct raw_schema {
	struct raw_field field[2 * SHARD_FIELDS_MAX];
	uint32_t field_count;
	uint64_t record_bytes;
};

bool raw_schema_parse(const char *text, struct raw_schema *out, char *why, size_t why_bytes);

#endif
