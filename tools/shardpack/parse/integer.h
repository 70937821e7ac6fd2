/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integer.h - integers of 1, 2, 4 or 8 bytes: from the bytes of a file, and to those of a field
 */
#ifndef SHARD_SHARDPACK_PARSE_INTEGER_H
#define SHARD_SHARDPACK_PARSE_INTEGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shard.h"

static inline bool integer_is_signed(uint32_t dtype)
{
	return dtype == SHARD_I8 || dtype == SHARD_I16 || dtype == SHARD_I32 || dtype == SHARD_I64;
}

/* Read an integer; with `swap` it is big-endian.  A u64 above 2^63 - 1 comes out negative. */
static inline int64_t integer_load(const uint8_t *in, size_t bytes, bool is_signed, bool swap)
{
	uint64_t value = 0;

	for (size_t k = 0; k < bytes; k++)
		value |= (uint64_t)in[swap ? bytes - 1 - k : k] << (8 * k);
	if (is_signed && bytes < 8 && value >> (8 * bytes - 1))
		value |= ~UINT64_C(0) << (8 * bytes);
	return (int64_t)value;
}

/* Write the low bytes of a value.  Each size is a constant, so that no copy is a call. */
static inline void integer_store(void *out, size_t bytes, uint64_t value)
{
	switch (bytes) {
	case 1:
		memcpy(out, &value, 1);
		break;
	case 2:
		memcpy(out, &value, 2);
		break;
	case 4:
		memcpy(out, &value, 4);
		break;
	default:
		memcpy(out, &value, 8);
	}
}

#endif
