/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_taps.h - the weights of a resampling filter, for one axis
 *
 * Output sample i of an axis is the sum of in[first + t] * weight[t], t < count, in fixed
 * point with TAPS_FRACTION_BITS bits.  resize.c applies these; nothing else needs them.
 */
#ifndef SHARD_IMAGE_RESIZE_TAPS_H
#define SHARD_IMAGE_RESIZE_TAPS_H

#include <stdint.h>

#include "tools/shardpack/images/resize_filter.h"

/* 8 bits hold the sample, 2 the overshoot of a filter with negative lobes: 22 remain of 32. */
#define TAPS_FRACTION_BITS 22

/*
 * One axis: `in` samples, or the part of them that the box has, become `out`; only [first, first +
 * count) are wanted.
 */
struct taps_axis {
	uint32_t in, out;
	uint32_t first, count;
	enum resize_filter filter;
	struct resize_box box;
};

struct taps_range {
	uint32_t first, count; /* count >= 1, first + count <= in */
};

/* The largest count of any range on this axis: the row length of the weight table. */
uint32_t taps_per_sample(const struct taps_axis *axis);

/*
 * Fill range[axis->count] and weight[axis->count * per_sample], which is taps_per_sample() or more;
 * weights that are not used are 0.  `work` is taps_per_sample() doubles that hold nothing before or
 * after.
 */
void taps_fill(const struct taps_axis *axis, struct taps_range *range, int32_t *weight, uint32_t per_sample,
	       double *work);

/* The same weights before they are rounded, for samples of 16 bits. */
void taps_fill_exact(const struct taps_axis *axis, struct taps_range *range, double *weight, uint32_t per_sample);

#endif
