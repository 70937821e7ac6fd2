/* SPDX-License-Identifier: Apache-2.0 */
/*
 * taps.c - weights of the bilinear filter with antialiasing, to the last bit those of Pillow
 *
 * The order of operations is part of the definition, and each is rounded: built with
 * -ffp-contract=off.
 */
#include "libshard/transform/transform.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

static double scale_of(uint32_t in, uint32_t out)
{
	return (double)in / out;
}

/* The filter reaches so far: one sample, or one step of the output where that is more. */
static double reach_of(double scale)
{
	return scale < 1 ? 1 : scale;
}

uint32_t transform_taps_most(uint32_t in, uint32_t out)
{
	uint32_t reach = (in + out - 1) / out; /* rounded up; 1 where the output is larger */
	uint32_t taps = 2 * reach + 1;

	return taps < in ? taps : in;
}

static double triangle(double x)
{
	x = x < 0 ? -x : x;
	return x < 1 ? 1 - x : 0;
}

struct transform_taps transform_taps_fill(uint32_t in, uint32_t out, uint32_t at, int32_t *weight, uint32_t most)
{
	double scale = scale_of(in, out), reach = reach_of(scale), step = 1 / reach;
	double center = (at + 0.5) * scale, low = center - reach + 0.5, high = center + reach + 0.5, sum = 0;
	uint32_t first = low > 0 ? (uint32_t)low : 0, end = high < in ? (uint32_t)high : in;

	for (uint32_t t = 0; t < end - first; t++)
		sum += triangle((t + (double)first - center + 0.5) * step);
	for (uint32_t t = 0; t < most; t++) {
		double w = t < end - first ? triangle((t + (double)first - center + 0.5) * step) / sum : 0;

		weight[t] = (int32_t)(w * (1 << TRANSFORM_FRACTION_BITS) + 0.5);
	}
	return (struct transform_taps){(uint16_t)first, (uint16_t)(end - first)};
}
