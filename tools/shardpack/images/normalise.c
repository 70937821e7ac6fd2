/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalise.c - samples to normalised numbers, through a table
 */
#include "tools/shardpack/images/images.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct float_form {
	uint32_t exponent_bits, fraction_bits;
};

static const struct float_form forms[] = {[IMAGE_F16] = {5, 10}, [IMAGE_BF16] = {8, 7}, [IMAGE_F32] = {8, 23}};

uint32_t normal_sample_bytes(enum image_samples samples)
{
	return samples == IMAGE_U8 ? 1 : samples == IMAGE_F32 ? 4 : 2;
}

static uint32_t infinity_bits(const struct float_form *form)
{
	return ((UINT32_C(1) << form->exponent_bits) - 1) << form->fraction_bits;
}

/*
 * The nearest number of that form, a half to even; subnormal ones are kept.  Scaling by a power of
 * two is exact, so there is one rounding.  A fraction that is rounded up to the next power of two
 * carries into the exponent, as it must.
 */
static uint32_t round_to(double value, const struct float_form *form)
{
	uint32_t sign = signbit(value) ? UINT32_C(1) << (form->exponent_bits + form->fraction_bits) : 0;
	int least = 2 - (1 << (form->exponent_bits - 1)), exponent, steps;
	double fraction;

	if (!isfinite(value))
		return sign | infinity_bits(form);
	fraction = frexp(fabs(value), &exponent); /* 0.5 to 1, or 0 */
	exponent = fraction > 0 && exponent - 1 > least ? exponent - 1 : least;
	steps = exponent - least;
	if (steps >= (1 << form->exponent_bits) - 2)
		return sign | infinity_bits(form);
	return sign | (((uint32_t)steps << form->fraction_bits) +
		       (uint32_t)nearbyint(ldexp(fabs(value), (int)form->fraction_bits - exponent)));
}

bool normal_fill(struct normal_table *t, enum image_samples samples, const struct normal *n, uint32_t *channel)
{
	const struct float_form *form = &forms[samples];
	uint32_t sign = UINT32_C(1) << (form->exponent_bits + form->fraction_bits);

	t->samples = samples;
	for (uint32_t c = 0; c < IMAGE_CHANNELS; c++) {
		*channel = c;
		if (!(n->std[c] > 0))
			return false;
		for (uint32_t x = 0; x < 256; x++) {
			double value = x / 255.0;

			value -= n->mean[c];
			t->bits[c][x] = round_to(value / n->std[c], form);
			if ((t->bits[c][x] & ~sign) >= infinity_bits(form))
				return false;
		}
	}
	return true;
}

/* `step` 1: channels side by side, from 0 on; 0: all of one channel. */
static void apply(const struct normal_table *t, const uint8_t *src, size_t count, uint32_t channel, uint32_t step,
		  uint8_t *dst)
{
	uint32_t c = channel;

	if (t->samples == IMAGE_F32) {
		for (size_t i = 0; i < count; i++) {
			memcpy(dst + 4 * i, &t->bits[c][src[i]], 4);
			c = step ? (c + 1) % IMAGE_CHANNELS : channel;
		}
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint16_t bits = (uint16_t)t->bits[c][src[i]];

		memcpy(dst + 2 * i, &bits, 2);
		c = step ? (c + 1) % IMAGE_CHANNELS : channel;
	}
}

void normal_apply(const struct normal_table *t, const uint8_t *src, size_t pixel_count, enum image_layout layout,
		  uint8_t *dst)
{
	size_t plane_bytes = pixel_count * normal_sample_bytes(t->samples);

	if (layout == IMAGE_HWC)
		apply(t, src, pixel_count * IMAGE_CHANNELS, 0, 1, dst);
	for (uint32_t c = 0; layout == IMAGE_CHW && c < IMAGE_CHANNELS; c++)
		apply(t, src + c * pixel_count, pixel_count, c, 0, dst + c * plane_bytes);
}

#define WIDE_COUNT 65536 /* samples of 16 bits */

uint32_t *normal_open_wide(enum image_samples samples, const struct normal *n)
{
	uint32_t *table = malloc(IMAGE_CHANNELS * WIDE_COUNT * sizeof(*table));

	for (uint32_t i = 0; table && i < IMAGE_CHANNELS * WIDE_COUNT; i++) {
		double value = i % WIDE_COUNT / (double)UINT16_MAX;

		value -= n->mean[i / WIDE_COUNT];
		table[i] = round_to(value / n->std[i / WIDE_COUNT], &forms[samples]);
	}
	return table;
}

void normal_apply_wide(const uint32_t *table, enum image_samples samples, const uint16_t *src, size_t pixel_count,
		       enum image_layout layout, uint8_t *dst)
{
	uint32_t bytes = normal_sample_bytes(samples);

	for (size_t i = 0; i < IMAGE_CHANNELS * pixel_count; i++, dst += bytes) {
		size_t c = layout == IMAGE_HWC ? i % IMAGE_CHANNELS : i / pixel_count;
		uint32_t bits = table[c * WIDE_COUNT + src[i]];
		uint16_t half = (uint16_t)bits;

		if (bytes == sizeof(bits))
			memcpy(dst, &bits, sizeof(bits));
		else
			memcpy(dst, &half, sizeof(half));
	}
}
