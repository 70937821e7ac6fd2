/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_wide.c - Pillow's resampler for mode I;16, bit for bit, with a crop window
 *
 * Sums of doubles, in the order of the source samples, as Pillow adds them: each operation is
 * rounded by itself, and so are the results of both passes.
 *
 * Rows come from the top.  A row is multiplied into the sum of each row of the result that it is a
 * part of; there are few of these at once.  So neither the source nor a pass is held as a whole.
 */
#include "tools/shardpack/images/images.h"

#include <math.h>
#include <string.h>

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

static void table_span(const struct wide_table *t, uint32_t *first, uint32_t *count)
{
	const struct taps_range *last;

	if (!t->range)
		return;
	last = &t->range[t->count - 1];
	*first = t->range[0].first;
	*count = last->first + last->count - *first;
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
	table_span(&r->across, &r->needed.x, &r->needed.width);
	table_span(&r->down, &r->needed.y, &r->needed.height);
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
static inline uint16_t to_sample(double sum, enum resize_pixels pixels)
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
			to[c] = to_sample(sum[c], r->job.pixels);
	}
}

/* The next row of the window is there; here it goes to its place, which has any alignment. */
static void put_row(struct wide_resizer *r, const uint16_t *row)
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
			line[i] = to_sample(sum[i], r->job.pixels);
		if (r->is_down_first)
			go_across(r, line, last);
		put_row(r, r->is_down_first ? last : line);
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
			put_row(r, row);
	}
}
