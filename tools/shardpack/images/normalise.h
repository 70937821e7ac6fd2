/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalise.h - samples to normalised numbers, through a table
 *
 * A sample x of a channel becomes (x / 255 - mean) / std, computed in double precision (IEEE 754,
 * each of the three operations rounded) and then rounded once to the type of the record, to
 * nearest, a half to even: what NumPy's ((x / 255.0 - mean) / std).astype(type) gives.  There are 3
 * x 256 of them, so none is ever computed for a pixel.  (torchvision's ToTensor and Normalize round
 * each operation to f32, and may differ in the last bit.)
 *
 * Of a sample of 16 bits x / 65535 stands in the place of x / 255, and the table is the caller's.
 */
#ifndef SHARD_IMAGE_NORMALISE_H
#define SHARD_IMAGE_NORMALISE_H

#include "tools/shardpack/images/image.h"

enum image_samples { IMAGE_U8, IMAGE_F16, IMAGE_BF16, IMAGE_F32, IMAGE_U16 };

struct normal {
	double mean[IMAGE_CHANNELS], std[IMAGE_CHANNELS];
};

struct normal_table {
	enum image_samples samples; /* no integers */
	uint32_t bits[IMAGE_CHANNELS][256];
};

/* Are records numbers that were made of samples, and not the samples? */
static inline bool image_is_normalised(enum image_samples samples)
{
	return samples != IMAGE_U8 && samples != IMAGE_U16;
}

uint32_t normal_sample_bytes(enum image_samples samples);

/*
 * False if a std is not above 0, or a number is too large for the type: then the channel is in
 * *channel.
 */
bool normal_fill(struct normal_table *t, enum image_samples samples, const struct normal *n, uint32_t *channel);

/*
 * `pixel_count` pixels of 8-bit samples to the same in the type of the table; `dst` has any
 * alignment.
 */
void normal_apply(const struct normal_table *t, const uint8_t *src, size_t pixel_count, enum image_layout layout,
		  uint8_t *dst);

/* The same of 16 bits: a table, or NULL without memory; normal_fill() has found `n` good. */
uint32_t *normal_open_wide(enum image_samples samples, const struct normal *n);
void normal_apply_wide(const uint32_t *table, enum image_samples samples, const uint16_t *src, size_t pixel_count,
		       enum image_layout layout, uint8_t *dst);

#endif
