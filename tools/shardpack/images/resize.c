/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - two passes of weighted sums, and the tables they need
 *
 * Across and then down, or the other way round.  Each pass rounds and clips to 8 bits, and a pass
 * whose size does not change is skipped: both are part of the reference's result, not a shortcut.
 * The sums come from struct resize_passes, which has an AVX2 way in resize_avx2.c.
 *
 * The two passes take turns, with few rows between them, however high the image is: so these
 * stay in the nearest cache.  Across first, eight rows go across, then comes each row of the result
 * whose last source row is there.  Down first, source rows are kept as they are, and eight rows
 * that were made of them go across together.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tools/shardpack/images/images.h"

/* ---- the weights of the filters, to the last bit those of Pillow ---- */

/*
 * Pure arithmetic: no allocation, no state.  The weights decide every bit of the output,
 * so the order of operations here is part of the definition: no reassociation, and no
 * fused multiply-add (GCC has only the option -ffp-contract=off for that; see the Makefile).
 * sin() is the one call to libm.  Its last bit may differ between C libraries; a weight
 * then changes only where its rounding to 22 bits was a tie to within 1 in 2^30.
 */

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

/* The same weights before they are rounded, for samples of 16 bits. */
static void taps_fill_exact(const struct taps_axis *axis, struct taps_range *range, double *weight, uint32_t per_sample)
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
	const double unit = 1 << TAPS_FRACTION_BITS;
	struct taps_axis one = *axis;

	one.count = 1;
	for (uint32_t i = 0; i < axis->count; i++, weight += per_sample) {
		one.first = axis->first + i;
		taps_fill_exact(&one, &range[i], work, taps_per_sample(axis));
		for (uint32_t t = 0; t < range[i].count; t++)
			/* to fixed point, rounded half away from zero, as the reference does */
			weight[t] = (int32_t)(work[t] < 0.0 ? work[t] * unit - 0.5 : work[t] * unit + 0.5);
		for (uint32_t t = range[i].count; t < per_sample; t++)
			weight[t] = 0;
	}
}

/* ---- the inner loops in C, for every processor ---- */

/*
 * Written so that compilers find what vectors there are, and the twin that other ways are compared
 * with.
 */

#define HALF (1 << (TAPS_FRACTION_BITS - 1))

static void pack_nothing(struct resize_table *t)
{
	(void)t;
}

/* How many source samples `count` ranges span, from the first of the first one on. */
static uint32_t taps_span(const struct taps_range *range, uint32_t count)
{
	return range[count - 1].first + range[count - 1].count - range[0].first;
}

static size_t work_bytes(const struct resize_table *across)
{
	return IMAGE_CHANNELS * (size_t)taps_span(across->range, across->axis.count) * sizeof(uint64_t);
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
	size_t samples = IMAGE_CHANNELS * (size_t)taps_span(t->range, t->axis.count);

	for (uint32_t y = 0; y < row_count; y += 2) {
		uint32_t y2 = y + 1 < row_count ? y + 1 : y; /* an odd last row pairs with itself */

		widen_pair(src + y * src_stride_bytes, src + y2 * src_stride_bytes, samples, wide);
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

/* ---- two passes over 8-bit samples ---- */

/*
 * Tables that a thread caches.  Photos come in a few dozen sizes; two tables each.  A table
 * above the limit, of an enormous source, is not cached: each axis has one place for it.
 */
#define CACHED_TABLES	   64
#define CACHED_TABLE_BYTES (256 << 10)

/* Rows between the passes, beside the ones that one row of the result is made of. */
#define SPARE_ROWS 64

enum { ACROSS, DOWN, AXIS_COUNT };

struct cached_table {
	struct resize_table table;
	int axis; /* what it was packed for */
	uint64_t last_use;
	struct scratch memory;
};

struct resizer {
	const struct resize_passes *passes; /* const after open */
	struct cached_table cached[CACHED_TABLES], large[AXIS_COUNT];
	uint64_t use_count;
	struct scratch rows; /* across first: between the passes; down first: of the source */
	struct scratch tall; /* down first: between the passes */
	struct scratch work; /* of the pass across */
	struct scratch line; /* rows of the result, where they cannot be made in their place */

	/* The image at hand. */
	struct resize_job job;
	struct image_window needed;
	const struct resize_table *across, *down; /* NULL: the size is right, no pass */
	bool is_down_first;			  /* there are both passes, and this is their order */
	size_t row_bytes, stride_bytes;		  /* of rows that are kept */
	size_t line_stride_bytes;		  /* of rows in `line` */
	uint32_t row_capacity;			  /* of rows that are kept */
	uint32_t rows_first, rows_end;		  /* source rows that are */
	uint32_t done;				  /* rows of the window */
};

struct resizer *resizer_open_portable(void)
{
	struct resizer *r = calloc(1, sizeof(*r));

	if (r)
		r->passes = &resize_passes_portable;
	return r;
}

struct resizer *resizer_open(void)
{
	const struct resize_passes *fast = resize_passes_avx2();
	struct resizer *r = resizer_open_portable();

	if (r && fast)
		r->passes = fast;
	return r;
}

void resizer_close(struct resizer *r)
{
	if (!r)
		return;
	for (int i = 0; i < CACHED_TABLES; i++)
		scratch_free(&r->cached[i].memory);
	for (int i = 0; i < AXIS_COUNT; i++)
		scratch_free(&r->large[i].memory);
	scratch_free(&r->rows);
	scratch_free(&r->tall);
	scratch_free(&r->work);
	scratch_free(&r->line);
	free(r);
}

/* ---- tables ---- */

static bool holds(const struct cached_table *k, const struct taps_axis *axis, int which)
{
	const struct taps_axis *a = &k->table.axis;

	return a->in == axis->in && a->out == axis->out && a->first == axis->first && a->count == axis->count &&
	       a->filter == axis->filter && a->box.from == axis->box.from && a->box.length == axis->box.length &&
	       k->axis == which;
}

/* Even, as the packed forms want it. */
static uint32_t table_stride(const struct taps_axis *axis)
{
	return (taps_per_sample(axis) + 1) & ~UINT32_C(1);
}

static bool table_build(const struct resizer *r, struct cached_table *k, const struct taps_axis *axis, int which)
{
	size_t per_sample = table_stride(axis), count = axis->count;
	size_t work_bytes = per_sample * sizeof(double), range_bytes = count * sizeof(struct taps_range);
	size_t start_bytes = count * sizeof(int32_t);
	struct resize_table *t = &k->table;
	uint8_t *at;

	t->axis.count = 0; /* no longer what it was, should memory run out */
	if (!scratch_reserve(&k->memory, work_bytes + range_bytes + start_bytes + count * per_sample * sizeof(int32_t)))
		return false;
	at = k->memory.data + work_bytes;
	t->range = (void *)at;
	t->start = (void *)(at + range_bytes);
	t->weight = (void *)(at + range_bytes + start_bytes);
	t->per_sample = (uint32_t)per_sample;
	taps_fill(axis, t->range, t->weight, t->per_sample, (void *)k->memory.data);
	t->axis = *axis;
	k->axis = which;
	if (which == ACROSS)
		r->passes->pack_across(t);
	else
		r->passes->pack_down(t);
	return true;
}

/*
 * The table for `axis`, built unless it is cached; NULL when memory ran out.  It stays as it
 * is through one more call for the other axis, which never takes the place last used.
 */
static const struct resize_table *table_get(struct resizer *r, const struct taps_axis *axis, int which)
{
	struct cached_table *k = &r->cached[0];

	if ((size_t)table_stride(axis) * axis->count > CACHED_TABLE_BYTES / sizeof(int32_t)) {
		k = &r->large[which];
		return holds(k, axis, which) || table_build(r, k, axis, which) ? &k->table : NULL;
	}
	for (int i = 0; i < CACHED_TABLES; i++) {
		if (holds(&r->cached[i], axis, which)) {
			r->cached[i].last_use = ++r->use_count;
			return &r->cached[i].table;
		}
		if (r->cached[i].last_use < k->last_use)
			k = &r->cached[i];
	}
	k->last_use = ++r->use_count;
	return table_build(r, k, axis, which) ? &k->table : NULL;
}

/* ---- one image ---- */

/* As rows between the passes lie. */
static size_t row_stride(size_t row_bytes)
{
	return (row_bytes + RESIZE_ROW_SLACK_BYTES + RESIZE_ROW_ALIGN_BYTES - 1) &
	       ~(size_t)(RESIZE_ROW_ALIGN_BYTES - 1);
}

static bool reserve(struct resizer *r)
{
	size_t line_bytes = IMAGE_CHANNELS * (size_t)r->job.window.width;
	uint32_t most = 1; /* source rows of a row of the result */

	r->row_bytes = r->is_down_first ? IMAGE_CHANNELS * (size_t)r->needed.width : line_bytes;
	r->stride_bytes = row_stride(r->row_bytes);
	r->line_stride_bytes = row_stride(line_bytes);
	for (uint32_t y = 0; r->down && y < r->down->axis.count; y++)
		if (most < r->down->range[y].count)
			most = r->down->range[y].count;
	/* as many as make it rare to move the last ones to the front */
	r->row_capacity = (most < SPARE_ROWS ? SPARE_ROWS : most) + most;
	if (r->row_capacity > r->needed.height)
		r->row_capacity = r->needed.height;
	if (r->is_down_first)
		line_bytes = RESIZE_ROWS_AT_ONCE * r->line_stride_bytes;
	else if (!r->job.target.plane_bytes)
		line_bytes = 0;
	return scratch_reserve(&r->rows, r->row_capacity * r->stride_bytes) &&
	       scratch_reserve(&r->tall, r->is_down_first ? RESIZE_ROWS_AT_ONCE * r->stride_bytes : 0) &&
	       scratch_reserve(&r->work, r->across ? r->passes->work_bytes(r->across) : 0) &&
	       scratch_reserve(&r->line, line_bytes);
}

/* Do columns come first?  Where both sides change. */
static bool resize_is_down_first(const struct resize_job *job)
{
	int64_t less_across = (int64_t)job->in_width - job->width, less_down = (int64_t)job->in_height - job->height;

	switch (job->pixels) {
	case RESIZE_PILLOW_12:
		return job->in_height > UINT64_C(100) * job->in_width && less_down > 0;
	case RESIZE_PILLOW_13:
		return less_down > 0 && less_down > 2 * less_across;
	case RESIZE_ROWS_FIRST:
		break;
	}
	return false;
}

/* Is there anything to do?  A box that is all of the source changes nothing. */
static bool needs_pass(struct taps_axis *axis)
{
	if (axis->box.length == axis->in)
		axis->box.length = 0;
	return axis->out != axis->in || axis->box.length > 0;
}

bool resizer_begin(struct resizer *r, const struct resize_job *job, struct image_window *needed)
{
	const struct image_window *w = &job->window;
	struct taps_axis x_axis = {job->in_width, job->width, w->x, w->width, job->filter, job->across};
	struct taps_axis y_axis = {job->in_height, job->height, w->y, w->height, job->filter, job->down};

	assert(w->width && w->x <= job->width && w->width <= job->width - w->x);
	assert(w->height && w->y <= job->height && w->height <= job->height - w->y);
	r->job = *job;
	r->needed = *w;
	r->across = r->down = NULL;
	if (needs_pass(&x_axis)) {
		r->across = table_get(r, &x_axis, ACROSS);
		if (!r->across)
			return false;
		r->needed.x = r->across->range[0].first;
		r->needed.width = taps_span(r->across->range, r->across->axis.count);
	}
	if (needs_pass(&y_axis)) {
		r->down = table_get(r, &y_axis, DOWN);
		if (!r->down)
			return false;
		r->needed.y = r->down->range[0].first;
		r->needed.height = taps_span(r->down->range, r->down->axis.count);
	}
	r->is_down_first = r->across && r->down && resize_is_down_first(job);
	r->rows_first = r->rows_end = r->needed.y;
	r->done = 0;
	*needed = r->needed;
	return reserve(r);
}

/* Row y of the window is there; here it goes to its place. */
static void put_row(const struct resizer *r, uint32_t y, const uint8_t *row)
{
	const struct resize_target *target = &r->job.target;
	uint8_t *to = target->pixels + y * target->row_bytes;

	if (target->plane_bytes)
		r->passes->split(row, r->job.window.width, to, target->plane_bytes);
	else
		memcpy(to, row, IMAGE_CHANNELS * (size_t)r->job.window.width);
}

/* The next row of the window is this, or the sum of these. */
static void emit_across_first(struct resizer *r, const uint8_t *src)
{
	const struct resize_target *target = &r->job.target;
	uint8_t *to = target->plane_bytes ? r->line.data : target->pixels + r->done * target->row_bytes;

	if (r->down)
		r->passes->vertical(r->down, r->done, src, r->stride_bytes, to, r->row_bytes);
	if (!r->down || target->plane_bytes)
		put_row(r, r->done, r->down ? r->line.data : src);
	r->done++;
}

/* The same, of source rows.  The sums wait until there are enough of them to go across. */
static void emit_down_first(struct resizer *r, const uint8_t *src)
{
	uint32_t waiting = r->done % RESIZE_ROWS_AT_ONCE;

	r->passes->vertical(r->down, r->done++, src, r->stride_bytes, r->tall.data + waiting++ * r->stride_bytes,
			    r->row_bytes);
	if (waiting < RESIZE_ROWS_AT_ONCE && r->done < r->job.window.height)
		return;
	r->passes->horizontal(r->across, r->tall.data, r->stride_bytes, waiting, r->work.data, r->line.data,
			      r->line_stride_bytes);
	for (uint32_t i = 0; i < waiting; i++)
		put_row(r, r->done - waiting + i, r->line.data + i * r->line_stride_bytes);
}

/* The source row that the next row of the window begins with. */
static uint32_t first_row(const struct resizer *r)
{
	return r->down ? r->down->range[r->done].first : r->needed.y + r->done;
}

void resizer_rows(struct resizer *r, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	while (row_count && r->done < r->job.window.height) {
		uint32_t now = row_count < RESIZE_ROWS_AT_ONCE ? row_count : RESIZE_ROWS_AT_ONCE, room, kept;
		uint32_t first = first_row(r); /* what is before it nothing needs any more */
		uint8_t *to;

		if (r->rows_end - r->rows_first + now > r->row_capacity) {
			kept = first < r->rows_end ? r->rows_end - first : 0;
			memmove(r->rows.data, r->rows.data + (r->rows_end - kept - r->rows_first) * r->stride_bytes,
				kept * r->stride_bytes);
			r->rows_first = r->rows_end - kept;
		}
		room = r->row_capacity - (r->rows_end - r->rows_first);
		now = now < room ? now : room;
		to = r->rows.data + (r->rows_end - r->rows_first) * r->stride_bytes;
		if (r->across && !r->is_down_first)
			r->passes->horizontal(r->across, pixels, stride_bytes, now, r->work.data, to, r->stride_bytes);
		else
			for (uint32_t y = 0; y < now; y++)
				memcpy(to + y * r->stride_bytes, pixels + y * stride_bytes, r->row_bytes);
		r->rows_end += now;
		pixels += now * stride_bytes;
		row_count -= now;
		while (r->done < r->job.window.height) {
			const uint8_t *src;

			first = first_row(r);
			if (first + (r->down ? r->down->range[r->done].count : 1) > r->rows_end)
				break;
			src = r->rows.data + (first - r->rows_first) * r->stride_bytes;
			if (r->is_down_first)
				emit_down_first(r, src);
			else
				emit_across_first(r, src);
		}
	}
}

bool resizer_run(struct resizer *r, const struct image *src, uint32_t width, uint32_t height, enum resize_filter filter,
		 const struct image_window *window, const struct resize_target *target)
{
	struct resize_job job = {.in_width = src->width,
				 .in_height = src->height,
				 .width = width,
				 .height = height,
				 .filter = filter,
				 .window = *window,
				 .target = *target};
	size_t stride_bytes = IMAGE_CHANNELS * (size_t)src->width;
	struct image_window needed;

	if (!resizer_begin(r, &job, &needed))
		return false;
	resizer_rows(r, src->pixels + needed.y * stride_bytes + IMAGE_CHANNELS * (size_t)needed.x, stride_bytes,
		     needed.height);
	return true;
}

/* ---- 16 bits a sample, as Pillow's mode I;16 ---- */

/*
 * Sums of doubles, in the order of the source samples, as Pillow adds them: each operation is
 * rounded by itself, and so are the results of both passes.
 *
 * Rows come from the top.  A row is multiplied into the sum of each row of the result that it is a
 * part of; there are few of these at once.  So neither the source nor a pass is held as a whole.
 */

/* The weights of one axis. */
struct wide_table {
	struct taps_range *range; /* [count]; NULL: the size is right, no pass */
	double *weight;		  /* sample i has weight[i * per_sample] and on */
	uint32_t count, per_sample;
	struct scratch memory;
};

struct wide_resizer {
	struct resize_job job;
	struct image_window needed;
	struct wide_table across, down;
	bool is_down_first;
	uint32_t row;	     /* of the source: the next one to come */
	uint32_t done;	     /* rows of the window */
	uint32_t sum_count;  /* rows of the result that a row may be a part of at once */
	size_t sum_samples;  /* of each of their sums */
	struct scratch sums; /* sum_count rows of doubles; row y of the window is at y % sum_count */
	struct scratch line, last;
};

struct wide_resizer *wide_resizer_open(void)
{
	return calloc(1, sizeof(struct wide_resizer));
}

void wide_resizer_close(struct wide_resizer *r)
{
	if (!r)
		return;
	scratch_free(&r->across.memory);
	scratch_free(&r->down.memory);
	scratch_free(&r->sums);
	scratch_free(&r->line);
	scratch_free(&r->last);
	free(r);
}

static bool fill_table(struct wide_table *t, const struct taps_axis *axis)
{
	size_t weight_bytes;

	t->range = NULL;
	if (axis->out == axis->in)
		return true;
	t->count = axis->count;
	t->per_sample = taps_per_sample(axis);
	weight_bytes = (size_t)t->count * t->per_sample * sizeof(double);
	if (!scratch_reserve(&t->memory, weight_bytes + t->count * sizeof(struct taps_range)))
		return false;
	t->weight = (void *)t->memory.data;
	t->range = (void *)(t->memory.data + weight_bytes);
	taps_fill_exact(axis, t->range, t->weight, t->per_sample);
	return true;
}

/* The most rows of the result that have a source row in common. */
static uint32_t overlap(const struct wide_table *t)
{
	uint32_t most = 1;

	for (uint32_t y = 0, end = 0; y < t->count; y++) {
		while (end < t->count && t->range[end].first < t->range[y].first + t->range[y].count)
			end++;
		most = end - y > most ? end - y : most;
	}
	return most;
}

bool wide_resizer_begin(struct wide_resizer *r, const struct resize_job *job, struct image_window *needed)
{
	const struct image_window *w = &job->window;
	struct taps_axis x_axis = {job->in_width, job->width, w->x, w->width, job->filter, {0, 0}};
	struct taps_axis y_axis = {job->in_height, job->height, w->y, w->height, job->filter, {0, 0}};

	r->job = *job;
	r->needed = *w;
	if (!fill_table(&r->across, &x_axis) || !fill_table(&r->down, &y_axis))
		return false;
	if (r->across.range) {
		r->needed.x = r->across.range[0].first;
		r->needed.width = taps_span(r->across.range, r->across.count);
	}
	if (r->down.range) {
		r->needed.y = r->down.range[0].first;
		r->needed.height = taps_span(r->down.range, r->down.count);
	}
	r->is_down_first = r->across.range && r->down.range && resize_is_down_first(job);
	r->row = r->needed.y;
	r->done = 0;
	r->sum_samples = IMAGE_CHANNELS * (size_t)(r->is_down_first ? r->needed.width : w->width);
	r->sum_count = r->down.range ? overlap(&r->down) : 0;
	*needed = r->needed;
	return scratch_reserve(&r->sums, r->sum_count * r->sum_samples * sizeof(double)) &&
	       scratch_reserve(&r->line,
			       IMAGE_WIDE_BYTES * (size_t)(r->needed.width > w->width ? r->needed.width : w->width)) &&
	       scratch_reserve(&r->last, IMAGE_WIDE_BYTES * (size_t)w->width);
}

/* To the nearest, a half away from zero; then clipped, as the Pillow of the job clips. */
static inline uint16_t to_wide_sample(double sum, enum resize_pixels pixels)
{
	int32_t value = (int32_t)(sum >= 0 ? floor(sum + 0.5) : -floor(fabs(sum) + 0.5));

	if (value < 0)
		return 0;
	if (value <= UINT16_MAX)
		return (uint16_t)value;
	return pixels == RESIZE_PILLOW_13 ? UINT16_MAX : (uint16_t)(0xff00 | (value & 0xff));
}

/* A row of the columns that are needed to one of the window. */
static void go_across(const struct wide_resizer *r, const uint16_t *from, uint16_t *to)
{
	const struct wide_table *t = &r->across;

	for (uint32_t x = 0; x < t->count; x++, to += IMAGE_CHANNELS) {
		const uint16_t *in = from + IMAGE_CHANNELS * (size_t)(t->range[x].first - r->needed.x);
		const double *weight = t->weight + (size_t)x * t->per_sample;
		double sum[IMAGE_CHANNELS] = {0};

		for (uint32_t i = 0; i < t->range[x].count; i++, in += IMAGE_CHANNELS)
			for (int c = 0; c < IMAGE_CHANNELS; c++)
				sum[c] += in[c] * weight[i];
		for (int c = 0; c < IMAGE_CHANNELS; c++)
			to[c] = to_wide_sample(sum[c], r->job.pixels);
	}
}

/* The next row of the window is there; here it goes to its place, which has any alignment. */
static void put_wide_row(struct wide_resizer *r, const uint16_t *row)
{
	const struct resize_target *target = &r->job.target;
	uint8_t *to = target->pixels + r->done++ * target->row_bytes;

	if (!target->plane_bytes) {
		memcpy(to, row, IMAGE_WIDE_BYTES * (size_t)r->job.window.width);
		return;
	}
	for (uint32_t x = 0; x < r->job.window.width; x++)
		for (int c = 0; c < IMAGE_CHANNELS; c++)
			memcpy(to + c * target->plane_bytes + sizeof(*row) * x, &row[IMAGE_CHANNELS * x + (uint32_t)c],
			       sizeof(*row));
}

static double *sum_of(const struct wide_resizer *r, uint32_t y)
{
	return (double *)(void *)r->sums.data + y % r->sum_count * r->sum_samples;
}

/* The row that came last belongs to these sums; some of them are complete with it. */
static void add_row(struct wide_resizer *r, const uint16_t *row)
{
	const struct wide_table *t = &r->down;
	uint16_t *line = (void *)r->line.data, *last = (void *)r->last.data;

	for (uint32_t y = r->done; y < t->count && t->range[y].first <= r->row; y++) {
		double weight = t->weight[(size_t)y * t->per_sample + r->row - t->range[y].first], *sum = sum_of(r, y);

		for (size_t i = 0; i < r->sum_samples; i++)
			sum[i] = (r->row == t->range[y].first ? 0 : sum[i]) + row[i] * weight;
	}
	while (r->done < t->count && t->range[r->done].first + t->range[r->done].count == r->row + 1) {
		const double *sum = sum_of(r, r->done);

		for (size_t i = 0; i < r->sum_samples; i++)
			line[i] = to_wide_sample(sum[i], r->job.pixels);
		if (r->is_down_first)
			go_across(r, line, last);
		put_wide_row(r, r->is_down_first ? last : line);
	}
}

void wide_resizer_rows(struct wide_resizer *r, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	uint16_t *last = (void *)r->last.data;

	for (; row_count; row_count--, pixels += stride_bytes, r->row++) {
		const uint16_t *row = (const void *)pixels;

		if (r->across.range && !r->is_down_first) {
			go_across(r, row, last);
			row = last;
		}
		if (r->down.range)
			add_row(r, row);
		else
			put_wide_row(r, row);
	}
}
