/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.c - one element of any dtype as a number
 */
#include "tools/shardcat/dataset/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "shard.h"

static double f16_value(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double value;

	if (exponent == 31)
		value = fraction ? (double)NAN : (double)INFINITY;
	else if (exponent)
		value = ldexp(fraction + 1024, exponent - 25);
	else
		value = ldexp(fraction, -24); /* subnormal */
	return bits >> 15 ? -value : value;
}

/* Little-endian bytes, as the format has them; the sign is extended for signed dtypes. */
static uint64_t load_bits(uint32_t dtype, const void *data)
{
	unsigned bytes = (unsigned)shard_dtype_bytes(dtype), shift = 64 - 8 * bytes;
	uint64_t bits = 0;
	int64_t value;

	memcpy(&bits, data, bytes);
	if (dtype != SHARD_I8 && dtype != SHARD_I16 && dtype != SHARD_I32)
		return bits;
	bits <<= shift;
	memcpy(&value, &bits, sizeof(value));
	return (uint64_t)(value >> shift);
}

int64_t number_integer(uint32_t dtype, const void *data)
{
	return (int64_t)load_bits(dtype, data);
}

double number_double(uint32_t dtype, const void *data)
{
	uint64_t bits = load_bits(dtype, data);
	uint32_t low = (uint32_t)bits;
	double value;
	float narrow;

	switch (dtype) {
	case SHARD_I8:
	case SHARD_I16:
	case SHARD_I32:
	case SHARD_I64:
		return (double)(int64_t)bits;
	case SHARD_F16:
		return f16_value((uint16_t)bits);
	case SHARD_BF16:
		low <<= 16;
		/* fallthrough */
	case SHARD_F32:
		memcpy(&narrow, &low, sizeof(narrow));
		return narrow;
	case SHARD_F64:
		memcpy(&value, &bits, sizeof(value));
		return value;
	case SHARD_BOOL:
		return bits != 0;
	default:
		return (double)bits;
	}
}

const char *number_text(char out[NUMBER_CHARS], uint32_t dtype, const void *data)
{
	uint64_t bits = load_bits(dtype, data);

	switch (dtype) {
	case SHARD_I8:
	case SHARD_I16:
	case SHARD_I32:
	case SHARD_I64:
		snprintf(out, NUMBER_CHARS, "%" PRId64, (int64_t)bits);
		break;
	case SHARD_F16:
	case SHARD_BF16:
		snprintf(out, NUMBER_CHARS, "%.5g", number_double(dtype, data));
		break;
	case SHARD_F32:
		snprintf(out, NUMBER_CHARS, "%.9g", number_double(dtype, data));
		break;
	case SHARD_F64:
		snprintf(out, NUMBER_CHARS, "%.17g", number_double(dtype, data));
		break;
	case SHARD_BOOL:
		snprintf(out, NUMBER_CHARS, "%s", bits ? "true" : "false");
		break;
	default:
		snprintf(out, NUMBER_CHARS, "%" PRIu64, bits);
	}
	return out;
}

const char *number_npy_name(uint32_t dtype)
{
	static const char *const names[] = {
		[SHARD_U8] = "|u1",   [SHARD_I8] = "|i1",   [SHARD_U16] = "<u2", [SHARD_I16] = "<i2",
		[SHARD_U32] = "<u4",  [SHARD_I32] = "<i4",  [SHARD_U64] = "<u8", [SHARD_I64] = "<i8",
		[SHARD_F16] = "<f2",  [SHARD_BF16] = "<u2", [SHARD_F32] = "<f4", [SHARD_F64] = "<f8",
		[SHARD_BOOL] = "|b1",
	};

	return names[dtype];
}
