/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_table.c - what each 8-bit sample of a channel becomes
 *
 * There are 256 of them, so no pixel is ever computed, and the CPU and the GPU cannot differ.  The
 * numbers are those of torchvision's ToTensor and Normalize on a CPU, ((x / 255) - mean) / std with
 * each operation rounded to f32, then rounded to the type of the output, as tensor.half() and
 * tensor.bfloat16() do.
 */
#include <string.h>

#include "libshard/transform/transform.h"

static uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/*
 * The upper bits of `bits` without the last `drop`, to nearest, a half to even.  A carry into the
 * exponent is right.
 */
static uint32_t round_off(uint32_t bits, unsigned drop)
{
	uint32_t half = UINT32_C(1) << (drop - 1), rest = bits & (2 * half - 1), kept = bits >> drop;

	return kept + (rest > half || (rest == half && (kept & 1)));
}

static uint32_t round_to_f16(uint32_t bits)
{
	uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff, exponent = magnitude >> 23;

	if (magnitude > 0x7f800000)
		return sign | 0x7e00;
	if (exponent >= 127 + 16)
		return sign | 0x7c00;
	if (exponent >= 127 - 14) /* the exponent is counted from 15, no more from 127 */
		return sign | round_off(magnitude - ((127 - 15) << 23), 13);
	if (exponent < 127 - 25) /* less than half of the least one */
		return sign;
	/* one of the subnormal */
	return sign | round_off((magnitude & 0x7fffff) | 0x800000, 13 + (127 - 14) - exponent);
}

uint32_t transform_round(float value, uint32_t dtype)
{
	uint32_t bits = bits_of(value);

	if (dtype == SHARD_F32)
		return bits;
	if (dtype == SHARD_F16)
		return round_to_f16(bits);
	return (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : round_off(bits, 16);
}

static bool is_finite(uint32_t bits, uint32_t dtype)
{
	uint32_t infinity = dtype == SHARD_F32 ? 0x7f800000 : dtype == SHARD_F16 ? 0x7c00 : 0x7f80;

	return (bits & infinity) != infinity;
}

bool transform_fill_table(struct transform_plan *p, const float *mean, const float *std, uint32_t *channel)
{
	for (uint32_t c = 0; c < p->channels; c++) {
		float by = std[c] == 0 ? 1 : std[c]; /* zero is what options have that were not set */

		*channel = c;
		for (uint32_t x = 0; x < 256; x++) {
			float value = (float)x / 255;

			value -= mean[c];
			p->bits[c][x] = p->dtype == SHARD_U8 ? x : transform_round(value / by, p->dtype);
			if (p->dtype != SHARD_U8 && !is_finite(p->bits[c][x], p->dtype))
				return false;
		}
	}
	return true;
}
