/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - two passes of weighted sums, and the tables they need
 *
 * Rows first into 8-bit intermediate rows, then columns.  Each pass rounds and clips to 8
 * bits, and a pass whose size does not change is skipped: both are part of the reference's
 * result, not a shortcut.  Weights come from resize_taps.c.  All sums are 32-bit integers
 * modulo 2^32, so any order of addition gives the same bits; the passes make use of that.
 */
#include "tools/shardpack/resize.h"

#include <assert.h>
#include <string.h>

#include "tools/shardpack/resize_taps.h"

#define HALF (1 << (TAPS_FRACTION_BITS - 1))

/*
 * Tables kept per thread.  Photos come in a few dozen sizes; two tables each.  A table
 * above the limit, of an enormous source, is not kept: each axis has one place for it.
 */
#define KEPT_TABLES	 64
#define KEPT_TABLE_BYTES (256 << 10)

enum { ACROSS, DOWN, AXIS_COUNT };

struct table {
	struct taps_axis axis; /* .count is 0 in a table never filled */
	uint64_t last_use;
	struct scratch memory;
	const struct taps_range *range;
	const int32_t *weight; /* range i: weight[i * per_sample] and on */
	uint32_t per_sample;
};

struct resizer {
	struct table kept[KEPT_TABLES], large[AXIS_COUNT];
	uint64_t use_count;
	struct scratch rows; /* between the passes */
	struct scratch wide; /* two source rows, as horizontal_pair wants them */
};

struct resizer *resizer_open(void)
{
	return calloc(1, sizeof(struct resizer));
}

void resizer_close(struct resizer *r)
{
	if (!r)
		return;
	for (int i = 0; i < KEPT_TABLES; i++)
		scratch_free(&r->kept[i].memory);
	for (int i = 0; i < AXIS_COUNT; i++)
		scratch_free(&r->large[i].memory);
	scratch_free(&r->rows);
	scratch_free(&r->wide);
	free(r);
}

static bool same_axis(const struct taps_axis *a, const struct taps_axis *b)
{
	return a->in == b->in && a->out == b->out && a->first == b->first && a->count == b->count &&
	       a->filter == b->filter;
}

static bool table_build(struct table *t, const struct taps_axis *axis)
{
	size_t per_sample = taps_per_sample(axis), count = axis->count;
	size_t work_bytes = per_sample * sizeof(double);
	size_t range_bytes = count * sizeof(struct taps_range);
	struct taps_range *range;
	int32_t *weight;

	t->axis.count = 0; /* no longer what it was, should memory run out */
	if (!scratch_reserve(&t->memory, work_bytes + range_bytes + count * per_sample * sizeof(int32_t)))
		return false;
	range = (void *)(t->memory.data + work_bytes);
	weight = (void *)(t->memory.data + work_bytes + range_bytes);
	taps_fill(axis, range, weight, (void *)t->memory.data);
	t->axis = *axis;
	t->range = range;
	t->weight = weight;
	t->per_sample = (uint32_t)per_sample;
	return true;
}

/*
 * The table for `axis`, built unless it is kept; NULL when memory ran out.  It stays as it
 * is through one more call for the other axis, which never takes the place last used.
 */
static const struct table *table_get(struct resizer *r, const struct taps_axis *axis, int which)
{
	struct table *t = &r->kept[0];

	if ((size_t)taps_per_sample(axis) * axis->count > KEPT_TABLE_BYTES / sizeof(int32_t)) {
		t = &r->large[which];
		return same_axis(&t->axis, axis) || table_build(t, axis) ? t : NULL;
	}
	for (int i = 0; i < KEPT_TABLES; i++) {
		if (same_axis(&r->kept[i].axis, axis)) {
			t = &r->kept[i];
			t->last_use = ++r->use_count;
			return t;
		}
		if (r->kept[i].last_use < t->last_use)
			t = &r->kept[i];
	}
	t->last_use = ++r->use_count;
	return table_build(t, axis) ? t : NULL;
}

/* A sum in fixed point to a sample; >> of a negative number is arithmetic in every compiler we use. */
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
static void horizontal_pair(const struct table *t, const uint64_t *src, uint8_t *a, uint8_t *b)
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

static void vertical(const uint8_t *src, size_t stride_bytes, const int32_t *w, uint32_t count, uint8_t *dst,
		     size_t sample_count)
{
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

/* `row_count` rows from `src`, whose first column is column 0 of the image. */
static bool horizontal_pass(struct resizer *r, const struct table *t, const uint8_t *src, size_t src_stride_bytes,
			    uint32_t row_count, uint8_t *dst, size_t dst_stride_bytes)
{
	const struct taps_range *last = &t->range[t->axis.count - 1];
	uint32_t first = t->range[0].first;
	size_t count = 3 * (size_t)(last->first + last->count - first);
	uint64_t *wide;

	if (!scratch_reserve(&r->wide, count * sizeof(*wide)))
		return false;
	wide = (uint64_t *)(void *)r->wide.data;
	src += 3 * (size_t)first;
	for (uint32_t y = 0; y < row_count; y += 2) {
		uint32_t y2 = y + 1 < row_count ? y + 1 : y; /* an odd last row pairs with itself */

		widen_pair(src + y * src_stride_bytes, src + y2 * src_stride_bytes, count, wide);
		horizontal_pair(t, wide, dst + y * dst_stride_bytes, dst + y2 * dst_stride_bytes);
	}
	return true;
}

/* `src` starts with the first row that the table reads. */
static void vertical_pass(const struct table *t, const uint8_t *src, size_t src_stride_bytes, size_t sample_count,
			  uint8_t *dst, size_t dst_stride_bytes)
{
	uint32_t first = t->range[0].first;

	for (uint32_t y = 0; y < t->axis.count; y++)
		vertical(src + (t->range[y].first - first) * src_stride_bytes, src_stride_bytes,
			 t->weight + (size_t)y * t->per_sample, t->range[y].count, dst + y * dst_stride_bytes,
			 sample_count);
}

bool resizer_run(struct resizer *r, const struct image *src, uint32_t width, uint32_t height, enum resize_filter filter,
		 const struct resize_window *window, uint8_t *dst, size_t dst_stride_bytes)
{
	struct taps_axis x_axis = {src->width, width, window->x, window->width, filter};
	struct taps_axis y_axis = {src->height, height, window->y, window->height, filter};
	size_t stride_bytes = 3 * (size_t)src->width, row_bytes = 3 * (size_t)window->width;
	const struct table *across = NULL, *down = NULL; /* NULL: the size is right, no pass */
	uint32_t first_row = window->y, row_count = window->height;
	const uint8_t *in;

	assert(window->width && window->x <= width && window->width <= width - window->x);
	assert(window->height && window->y <= height && window->height <= height - window->y);
	if (width != src->width && !(across = table_get(r, &x_axis, ACROSS)))
		return false;
	if (height != src->height) {
		const struct taps_range *last;

		down = table_get(r, &y_axis, DOWN);
		if (!down)
			return false;
		last = &down->range[down->axis.count - 1];
		first_row = down->range[0].first;
		row_count = last->first + last->count - first_row;
	}
	in = src->pixels + first_row * stride_bytes;
	if (across && !down)
		return horizontal_pass(r, across, in, stride_bytes, row_count, dst, dst_stride_bytes);
	if (across) {
		if (!scratch_reserve(&r->rows, row_count * row_bytes) ||
		    !horizontal_pass(r, across, in, stride_bytes, row_count, r->rows.data, row_bytes))
			return false;
		in = r->rows.data;
		stride_bytes = row_bytes;
	} else {
		in += 3 * (size_t)window->x;
	}
	if (down)
		vertical_pass(down, in, stride_bytes, row_bytes, dst, dst_stride_bytes);
	else
		for (uint32_t y = 0; y < row_count; y++)
			memcpy(dst + y * dst_stride_bytes, in + y * stride_bytes, row_bytes);
	return true;
}
