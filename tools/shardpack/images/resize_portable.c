/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_portable.c - the inner loops of the resampler in C, for every processor
 *
 * Written so that compilers find what vectors there are, and the twin that other ways are compared
 * with.
 */
#include "tools/shardpack/images/images.h"

#include "tools/shardpack/images/image.h"

#define HALF (1 << (TAPS_FRACTION_BITS - 1))

static void pack_nothing(struct resize_table *t)
{
	(void)t;
}

/* The columns that one row of the table's ranges spans. */
static size_t columns(const struct resize_table *t)
{
	const struct taps_range *last = &t->range[t->axis.count - 1];

	return last->first + last->count - t->range[0].first;
}

static size_t work_bytes(const struct resize_table *across)
{
	return IMAGE_CHANNELS * columns(across) * sizeof(uint64_t);
}

/*
 * A sum in fixed point to a sample; >> of a negative number is arithmetic in every compiler we use.
 */
static inline uint8_t to_sample(int32_t sum)
{
	sum >>= TAPS_FRACTION_BITS;
	return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* Two samples per 64-bit word: a from bit 0, b from bit 32.  One multiplication serves both. */
static void widen_pair(const uint8_t *a, const uint8_t *b, size_t count, uint64_t *wide)
{
	for (size_t i = 0; i < count; i++)
		wide[i] = a[i] | (uint64_t)b[i] << 32;
}

static inline void split_pair(uint64_t sum, uint8_t *a, uint8_t *b)
{
	int32_t low = (int32_t)(uint32_t)sum;

	*a = to_sample(low);
	/* A negative low half borrowed one from the high half. */
	*b = to_sample((int32_t)(uint32_t)((sum >> 32) + (low < 0)));
}

/* `src` holds the columns that the table reads, from its first on. */
static void horizontal_pair(const struct resize_table *t, const uint64_t *src, uint8_t *a, uint8_t *b)
{
	const uint64_t half = HALF | (uint64_t)HALF << 32;
	uint32_t first = t->range[0].first;

	for (uint32_t i = 0; i < t->axis.count; i++, a += 3, b += 3) {
		const uint64_t *in = src + 3 * (size_t)(t->range[i].first - first);
		const int32_t *w = t->weight + (size_t)i * t->per_sample;
		uint64_t sum0 = half, sum1 = half, sum2 = half;

		for (uint32_t n = t->range[i].count; n; n--, in += 3, w++) {
			uint64_t k = (uint64_t)(int64_t)*w;

			sum0 += in[0] * k;
			sum1 += in[1] * k;
			sum2 += in[2] * k;
		}
		split_pair(sum0, a, b);
		split_pair(sum1, a + 1, b + 1);
		split_pair(sum2, a + 2, b + 2);
	}
}

static void horizontal(const struct resize_table *t, const uint8_t *src, size_t src_stride_bytes, uint32_t row_count,
		       void *work, uint8_t *dst, size_t dst_stride_bytes)
{
	uint64_t *wide = work;

	for (uint32_t y = 0; y < row_count; y += 2) {
		uint32_t y2 = y + 1 < row_count ? y + 1 : y; /* an odd last row pairs with itself */

		widen_pair(src + y * src_stride_bytes, src + y2 * src_stride_bytes, IMAGE_CHANNELS * columns(t), wide);
		horizontal_pair(t, wide, dst + y * dst_stride_bytes, dst + y2 * dst_stride_bytes);
	}
}

#define BLOCK 32 /* samples: a constant length lets every compiler use its vectors */

static void vertical_block(const uint8_t *src, size_t stride_bytes, const int32_t *w, uint32_t count,
			   uint8_t *restrict dst)
{
	uint32_t sum[BLOCK];

	for (int i = 0; i < BLOCK; i++)
		sum[i] = HALF;
	for (; count; count--, src += stride_bytes, w++) {
		uint32_t k = (uint32_t)*w;

		for (int i = 0; i < BLOCK; i++)
			sum[i] += src[i] * k;
	}
	for (int i = 0; i < BLOCK; i++)
		dst[i] = to_sample((int32_t)sum[i]);
}

static void vertical(const struct resize_table *t, uint32_t y, const uint8_t *src, size_t stride_bytes, uint8_t *dst,
		     size_t sample_count)
{
	const int32_t *w = t->weight + (size_t)y * t->per_sample;
	uint32_t count = t->range[y].count;
	size_t i = 0;

	for (; i + BLOCK <= sample_count; i += BLOCK)
		vertical_block(src + i, stride_bytes, w, count, dst + i);
	if (i < sample_count && sample_count >= BLOCK) {
		i = sample_count - BLOCK; /* overlaps the block before: the same samples again */
		vertical_block(src + i, stride_bytes, w, count, dst + i);
		return;
	}
	for (; i < sample_count; i++) {
		uint32_t sum = HALF;

		for (uint32_t n = 0; n < count; n++)
			sum += src[i + n * stride_bytes] * (uint32_t)w[n];
		dst[i] = to_sample((int32_t)sum);
	}
}

static void split(const uint8_t *src, size_t pixel_count, uint8_t *restrict dst, size_t plane_bytes)
{
	uint8_t *restrict r = dst, *restrict g = r + plane_bytes, *restrict b = g + plane_bytes;

	for (size_t i = 0; i < pixel_count; i++, src += IMAGE_CHANNELS) {
		r[i] = src[0];
		g[i] = src[1];
		b[i] = src[2];
	}
}

const struct resize_passes resize_passes_portable = {
	.pack_across = pack_nothing,
	.pack_down = pack_nothing,
	.work_bytes = work_bytes,
	.horizontal = horizontal,
	.vertical = vertical,
	.split = split,
};
