/* SPDX-License-Identifier: Apache-2.0 */
/*
 * taps.c - weights of the bilinear filter with antialiasing, to the last bit those of Pillow; and
 * which of its passes comes first
 *
 * The order of operations is part of the definition, and each is rounded: built with
 * -ffp-contract=off.
 */
#include "libshard/transform/transform.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

uint32_t transform_taps_most(uint32_t in, uint32_t out)
{
	uint32_t reach = (in + out - 1) / out; /* rounded up; 1 where the output is larger */
	uint32_t taps = 2 * reach + 1;

	return taps < in ? taps : in;
}

bool transform_is_down_first(const struct transform_plan *p, const struct shard_transform_row *row)
{
	int64_t less_across = (int64_t)row->width - p->width, less_down = (int64_t)row->height - p->height;

	if (p->pixels == SHARD_PIXELS_PILLOW_12)
		return row->height > 100 * row->width && less_down > 0;
	return p->pixels == SHARD_PIXELS_PILLOW_13 && less_down > 0 && less_down > 2 * less_across;
}

uint32_t transform_down_first_width(const struct transform_plan *p)
{
	uint32_t widest = 0;

	if (p->in_height > p->height && p->pixels == SHARD_PIXELS_PILLOW_12)
		widest = (p->in_height - 1) / 100;
	else if (p->in_height > p->height && p->pixels == SHARD_PIXELS_PILLOW_13)
		widest = p->width + (p->in_height - p->height - 1) / 2;
	return widest < p->in_width ? widest : p->in_width;
}

static double triangle(double x)
{
	x = x < 0 ? -x : x;
	return x < 1 ? 1 - x : 0;
}

struct transform_taps transform_taps_fill(uint32_t in, uint32_t out, uint32_t at, int32_t *weight, uint32_t most)
{
	double scale = (double)in / out;
	/* How far the filter reaches: one sample, or one step of the output where that is more. */
	double reach = scale < 1 ? 1 : scale, step = 1 / reach;
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
