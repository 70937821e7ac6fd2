/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - two passes of weighted sums, and the tables they need
 *
 * Across and then down, or the other way round.  Each pass rounds and clips to 8 bits, and a pass
 * whose size does not change is skipped: both are part of the reference's result, not a shortcut.
 * Weights come from resize_taps.c, sums from struct resize_passes.
 *
 * The two passes take turns, with few rows between them, whatever the height of the image: so these
 * stay in the nearest cache.  Across first, eight rows go across, then comes each row of the result
 * whose last source row is there.  Down first, source rows are kept as they are, and eight rows
 * that were made of them go across together.
 */
#include "tools/shardpack/images/images.h"

#include <assert.h>
#include <string.h>

/*
 * Tables kept per thread.  Photos come in a few dozen sizes; two tables each.  A table
 * above the limit, of an enormous source, is not kept: each axis has one place for it.
 */
#define KEPT_TABLES	 64
#define KEPT_TABLE_BYTES (256 << 10)

/* Rows between the passes, beside those that one row of the result is made of. */
#define SPARE_ROWS 64

enum { ACROSS, DOWN, AXIS_COUNT };

struct kept {
	struct resize_table table;
	int axis; /* what it was packed for */
	uint64_t last_use;
	struct scratch memory;
};

struct resizer {
	const struct resize_passes *passes; /* const after open */
	struct kept kept[KEPT_TABLES], large[AXIS_COUNT];
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

static struct resizer *open_with(const struct resize_passes *passes)
{
	struct resizer *r = calloc(1, sizeof(*r));

	if (r)
		r->passes = passes;
	return r;
}

struct resizer *resizer_open(void)
{
	const struct resize_passes *fast = resize_passes_avx2();

	return open_with(fast ? fast : &resize_passes_portable);
}

struct resizer *resizer_open_portable(void)
{
	return open_with(&resize_passes_portable);
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
	scratch_free(&r->tall);
	scratch_free(&r->work);
	scratch_free(&r->line);
	free(r);
}

/* ---- tables ---- */

static bool holds(const struct kept *k, const struct taps_axis *axis, int which)
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

static bool table_build(const struct resizer *r, struct kept *k, const struct taps_axis *axis, int which)
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
 * The table for `axis`, built unless it is kept; NULL when memory ran out.  It stays as it
 * is through one more call for the other axis, which never takes the place last used.
 */
static const struct resize_table *table_get(struct resizer *r, const struct taps_axis *axis, int which)
{
	struct kept *k = &r->kept[0];

	if ((size_t)table_stride(axis) * axis->count > KEPT_TABLE_BYTES / sizeof(int32_t)) {
		k = &r->large[which];
		return holds(k, axis, which) || table_build(r, k, axis, which) ? &k->table : NULL;
	}
	for (int i = 0; i < KEPT_TABLES; i++) {
		if (holds(&r->kept[i], axis, which)) {
			r->kept[i].last_use = ++r->use_count;
			return &r->kept[i].table;
		}
		if (r->kept[i].last_use < k->last_use)
			k = &r->kept[i];
	}
	k->last_use = ++r->use_count;
	return table_build(r, k, axis, which) ? &k->table : NULL;
}

/* ---- one image ---- */

/* The source samples that a table reads. */
static void table_span(const struct resize_table *t, uint32_t *first, uint32_t *count)
{
	const struct taps_range *last = &t->range[t->axis.count - 1];

	*first = t->range[0].first;
	*count = last->first + last->count - *first;
}

/*
 * Rows that lie between the passes at once: so many that moving the last ones to the front is rare.
 */
static uint32_t rows_wanted(const struct resize_table *down)
{
	uint32_t most = 1;

	for (uint32_t y = 0; down && y < down->axis.count; y++)
		if (most < down->range[y].count)
			most = down->range[y].count;
	return (most < SPARE_ROWS ? SPARE_ROWS : most) + most;
}

/* As rows between the passes lie. */
static size_t row_stride(size_t row_bytes)
{
	return (row_bytes + RESIZE_ROW_SLACK_BYTES + RESIZE_ROW_ALIGN_BYTES - 1) &
	       ~(size_t)(RESIZE_ROW_ALIGN_BYTES - 1);
}

static bool reserve(struct resizer *r)
{
	size_t line_bytes = IMAGE_CHANNELS * (size_t)r->job.window.width;

	r->row_bytes = r->is_down_first ? IMAGE_CHANNELS * (size_t)r->needed.width : line_bytes;
	r->stride_bytes = row_stride(r->row_bytes);
	r->line_stride_bytes = row_stride(line_bytes);
	r->row_capacity = rows_wanted(r->down);
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

bool resize_is_down_first(const struct resize_job *job)
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

/* Is there anything to do?  A box that is all of the source is none. */
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
		table_span(r->across, &r->needed.x, &r->needed.width);
	}
	if (needs_pass(&y_axis)) {
		r->down = table_get(r, &y_axis, DOWN);
		if (!r->down)
			return false;
		table_span(r->down, &r->needed.y, &r->needed.height);
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

/* Source rows that the next row of the window begins with and ends before. */
static void next_range(const struct resizer *r, uint32_t *first, uint32_t *end)
{
	*first = r->down ? r->down->range[r->done].first : r->needed.y + r->done;
	*end = *first + (r->down ? r->down->range[r->done].count : 1);
}

/* Forget the rows that nothing needs any more. */
static void make_room(struct resizer *r)
{
	uint32_t first, end, kept;

	next_range(r, &first, &end);
	kept = first < r->rows_end ? r->rows_end - first : 0;
	memmove(r->rows.data, r->rows.data + (r->rows_end - kept - r->rows_first) * r->stride_bytes,
		kept * r->stride_bytes);
	r->rows_first = r->rows_end - kept;
}

/* Keep source rows, which have gone across if that is the first pass. */
static void keep(struct resizer *r, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	uint8_t *to = r->rows.data + (r->rows_end - r->rows_first) * r->stride_bytes;

	if (r->across && !r->is_down_first)
		r->passes->horizontal(r->across, pixels, stride_bytes, row_count, r->work.data, to, r->stride_bytes);
	else
		for (uint32_t y = 0; y < row_count; y++)
			memcpy(to + y * r->stride_bytes, pixels + y * stride_bytes, r->row_bytes);
	r->rows_end += row_count;
}

void resizer_rows(struct resizer *r, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	uint32_t first, end;

	while (row_count && r->done < r->job.window.height) {
		uint32_t now = row_count < RESIZE_ROWS_AT_ONCE ? row_count : RESIZE_ROWS_AT_ONCE, room;

		if (r->rows_end - r->rows_first + now > r->row_capacity)
			make_room(r);
		room = r->row_capacity - (r->rows_end - r->rows_first);
		now = now < room ? now : room;
		keep(r, pixels, stride_bytes, now);
		pixels += now * stride_bytes;
		row_count -= now;
		while (r->done < r->job.window.height) {
			const uint8_t *src;

			next_range(r, &first, &end);
			if (end > r->rows_end)
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
