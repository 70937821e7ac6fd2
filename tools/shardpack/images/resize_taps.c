/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_taps.c - filter weights, to the last bit those of Pillow
 *
 * Pure arithmetic: no allocation, no state.  The weights decide every bit of the output,
 * so the order of operations here is part of the definition: no reassociation, and no
 * fused multiply-add (GCC has only the option -ffp-contract=off for that; see the Makefile).
 * sin() is the one call to libm.  Its last bit may differ between C libraries; a weight
 * then changes only where its rounding to 22 bits was a tie to within 1 in 2^30.
 */
#include "tools/shardpack/images/images.h"

#include <math.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

static const double pi = 3.14159265358979323846;

static double filter_box(double x)
{
	return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double filter_bilinear(double x)
{
	x = fabs(x);
	return x < 1.0 ? 1.0 - x : 0.0;
}

/* Keys' cubic with a = -0.5, in Horner form. */
static double filter_bicubic(double x)
{
	const double a = -0.5;

	x = fabs(x);
	if (x < 1.0)
		return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
	if (x < 2.0)
		return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
	return 0.0;
}

static double sinc(double x)
{
	if (x == 0.0)
		return 1.0;
	x *= pi;
	return sin(x) / x;
}

static double filter_lanczos(double x)
{
	return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

static const struct {
	double (*at)(double x);
	double support; /* zero beyond this distance */
} filters[] = {
	[RESIZE_BOX] = {filter_box, 0.5},
	[RESIZE_BILINEAR] = {filter_bilinear, 1.0},
	[RESIZE_BICUBIC] = {filter_bicubic, 2.0},
	[RESIZE_LANCZOS] = {filter_lanczos, 3.0},
};

/* How many input samples one output step covers; when shrinking the filter widens by it. */
static double axis_scale(const struct taps_axis *axis)
{
	return (axis->box.length > 0 ? axis->box.length : axis->in) / axis->out;
}

static double filter_stretch(double scale)
{
	return scale < 1.0 ? 1.0 : scale;
}

uint32_t taps_per_sample(const struct taps_axis *axis)
{
	double support = filters[axis->filter].support * filter_stretch(axis_scale(axis));
	double taps = ceil(support) * 2.0 + 1.0;

	return taps < axis->in ? (uint32_t)taps : axis->in;
}

/* Round half away from zero, as the reference does. */
static int32_t to_fixed(double w)
{
	const double one = 1 << TAPS_FRACTION_BITS;

	return (int32_t)(w < 0.0 ? w * one - 0.5 : w * one + 0.5);
}

void taps_fill_exact(const struct taps_axis *axis, struct taps_range *range, double *weight, uint32_t per_sample)
{
	double scale = axis_scale(axis), stretch = filter_stretch(scale);
	double support = filters[axis->filter].support * stretch;
	double step = 1.0 / stretch;

	for (uint32_t i = 0; i < axis->count; i++, weight += per_sample) {
		double center = axis->box.from + ((double)axis->first + i + 0.5) * scale;
		/* Casts truncate toward zero, so a window that starts before 0 is clamped apart. */
		double low = center - support + 0.5, high = center + support + 0.5;
		uint32_t first = low > 0.0 ? (uint32_t)low : 0;
		uint32_t end = high < axis->in ? (uint32_t)high : axis->in;
		double sum = 0.0;

		range[i].first = first;
		range[i].count = end - first;
		for (uint32_t t = 0; t < range[i].count; t++) {
			weight[t] = filters[axis->filter].at((t + (double)first - center + 0.5) * step);
			sum += weight[t];
		}
		for (uint32_t t = 0; t < range[i].count; t++)
			weight[t] = sum != 0.0 ? weight[t] / sum : weight[t];
		for (uint32_t t = range[i].count; t < per_sample; t++)
			weight[t] = 0;
	}
}

void taps_fill(const struct taps_axis *axis, struct taps_range *range, int32_t *weight, uint32_t per_sample,
	       double *work)
{
	struct taps_axis one = *axis;

	one.count = 1;
	for (uint32_t i = 0; i < axis->count; i++, weight += per_sample) {
		one.first = axis->first + i;
		taps_fill_exact(&one, &range[i], work, taps_per_sample(axis));
		for (uint32_t t = 0; t < range[i].count; t++)
			weight[t] = to_fixed(work[t]);
		for (uint32_t t = range[i].count; t < per_sample; t++)
			weight[t] = 0;
	}
}
