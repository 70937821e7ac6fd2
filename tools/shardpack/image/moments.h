/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moments.h - count, sum and sum of squares of each channel, exactly
 *
 * Integers, so any order and any split into parts gives the same numbers.  65,025 * count
 * passes 2^64 only beyond 2.8e14 samples.
 */
#ifndef SHARDPACK_MOMENTS_H
#define SHARDPACK_MOMENTS_H

#include "tools/shardpack/image/image.h"

struct moments {
	uint64_t count[IMAGE_CHANNELS];
	uint64_t sum[IMAGE_CHANNELS];
	uint64_t sum_squares[IMAGE_CHANNELS];
};

/* Add one record of pixel_count * 3 bytes.  Start *m zeroed. */
void moments_add(struct moments *m, const uint8_t *record, size_t pixel_count, enum image_layout layout);

/* The same without a processor's special instructions. */
void moments_add_portable(struct moments *m, const uint8_t *record, size_t pixel_count, enum image_layout layout);

#endif /* SHARDPACK_MOMENTS_H */
