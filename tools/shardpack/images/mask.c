/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.c - which pixel of the file each pixel of the record is
 *
 * Columns and rows are chosen apart, once for a mask: one table each, in the order in which the
 * file has them.  So the rows are used as they come, and a mask that is to be turned needs no
 * memory of its own: its tables run along the other axis of the record, or backwards.
 */
#include "tools/shardpack/images/images.h"

#include <string.h>

/* The columns, or the rows, of the file that are wanted. */
struct axis {
	struct scratch table; /* uint32_t each, ascending; the first is 0, where the wanted part begins */
	uint32_t count;
	ptrdiff_t first, step; /* where in the record the first one goes, and how far the others lie apart */
};

struct mask {
	struct transform_options opt;
	struct image_sink sink;
	uint8_t *record; /* being written */
	uint32_t source_width, source_height, orientation;
	struct axis columns, rows;
	uint32_t row, rows_done; /* row: of the wanted part, the next to come; rows_done: of the table */
	uint32_t sample_bytes, fill;
};

static const uint32_t *table_of(const struct axis *a)
{
	return (const uint32_t *)(const void *)a->table.data;
}

/*
 * `size` pixels resized to `resized`, of which `span` is kept.  Pillow adds the scale up from pixel
 * to pixel, and so does this, from the first one on: a product would be rounded otherwise.  Returns
 * where the wanted part of the file begins; *count is how long it is.
 */
static uint32_t choose(struct axis *a, uint32_t size, uint32_t resized, const struct transform_span *span, bool back,
		       uint32_t *count)
{
	uint32_t *table = (uint32_t *)(void *)a->table.data, last = span->count - 1, begin;
	double scale = (double)size / resized, at = scale * 0.5;

	for (uint32_t i = 0; i < span->from; i++)
		at += scale;
	for (uint32_t i = 0; i <= last; i++, at += scale) {
		uint32_t idx = at < size ? (uint32_t)at : size - 1;

		table[back ? last - i : i] = back ? size - 1 - idx : idx;
	}
	begin = table[0];
	*count = table[last] - begin + 1;
	for (uint32_t i = 0; i <= last; i++)
		table[i] -= begin;
	a->count = span->count;
	return begin;
}

/* Where in the record that goes.  Along the axis its pixels are `stride` bytes apart. */
static void place(struct axis *a, const struct transform_span *span, bool back, ptrdiff_t stride)
{
	a->first = ((ptrdiff_t)span->to + (back ? span->count - 1 : 0)) * stride;
	a->step = back ? -stride : stride;
}

void mask_fill(const struct transform_options *opt, uint32_t sample_bytes, uint32_t fill, uint8_t *dst)
{
	size_t bytes = mask_record_bytes(opt, sample_bytes);
	uint16_t half = (uint16_t)fill;

	if (sample_bytes == 1)
		memset(dst, (int)fill, bytes);
	else
		for (size_t i = 0; i < bytes; i += sample_bytes)
			memcpy(dst + i, sample_bytes == 2 ? (const void *)&half : &fill, sample_bytes);
}

/* A mask is never scaled. */
static bool begin(void *context, const struct image_size *size, struct image_window *wanted)
{
	struct mask *m = context;
	struct turn_axes turn = turn_axes(m->orientation);
	struct transform_geometry g;
	uint32_t crop = m->opt.crop, width = size->width, height = size->height;
	ptrdiff_t pixel_bytes = m->sample_bytes, row_bytes = crop * pixel_bytes;

	m->source_width = turn.lies ? height : width;
	m->source_height = turn.lies ? width : height;
	m->row = 0;
	m->rows_done = 0;
	if (!scratch_reserve(&m->columns.table, crop * sizeof(uint32_t)) ||
	    !scratch_reserve(&m->rows.table, crop * sizeof(uint32_t)))
		return false;
	g = transform_geometry(&m->opt, m->source_width, m->source_height);
	if (g.across.count < crop || g.down.count < crop)
		mask_fill(&m->opt, m->sample_bytes, m->fill, m->record);
	if (turn.lies) {
		wanted->x = choose(&m->columns, width, g.height, &g.down, turn.columns_back, &wanted->width);
		wanted->y = choose(&m->rows, height, g.width, &g.across, turn.rows_back, &wanted->height);
		place(&m->columns, &g.down, turn.columns_back, row_bytes);
		place(&m->rows, &g.across, turn.rows_back, pixel_bytes);
	} else {
		wanted->x = choose(&m->columns, width, g.width, &g.across, turn.columns_back, &wanted->width);
		wanted->y = choose(&m->rows, height, g.height, &g.down, turn.rows_back, &wanted->height);
		place(&m->columns, &g.across, turn.columns_back, pixel_bytes);
		place(&m->rows, &g.down, turn.rows_back, row_bytes);
	}
	return true;
}

static void take_row(const struct mask *m, const uint8_t *values, uint8_t *to)
{
	const uint32_t *columns = table_of(&m->columns);

	if (m->sample_bytes == 1)
		for (uint32_t i = 0; i < m->columns.count; i++, to += m->columns.step)
			*to = values[columns[i]];
	else if (m->sample_bytes == 2)
		for (uint32_t i = 0; i < m->columns.count; i++, to += m->columns.step)
			memcpy(to, values + 2 * (size_t)columns[i], 2);
	else
		for (uint32_t i = 0; i < m->columns.count; i++, to += m->columns.step)
			memcpy(to, values + 4 * (size_t)columns[i], 4);
}

static void rows(void *context, const uint8_t *values, size_t stride_bytes, uint32_t row_count)
{
	struct mask *m = context;
	const uint32_t *wanted = table_of(&m->rows);

	for (; row_count; row_count--, values += stride_bytes, m->row++)
		for (; m->rows_done < m->rows.count && wanted[m->rows_done] == m->row; m->rows_done++)
			take_row(m, values,
				 m->record + m->columns.first + m->rows.first + (ptrdiff_t)m->rows_done * m->rows.step);
}

struct mask *mask_open(const struct transform_options *opt, uint32_t sample_bytes, uint32_t fill)
{
	struct mask *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->opt = *opt;
	m->sample_bytes = sample_bytes;
	m->fill = fill;
	m->sink = (struct image_sink){.begin = begin, .rows = rows, .context = m};
	return m;
}

void mask_close(struct mask *m)
{
	if (!m)
		return;
	scratch_free(&m->columns.table);
	scratch_free(&m->rows.table);
	free(m);
}

size_t mask_record_bytes(const struct transform_options *opt, uint32_t sample_bytes)
{
	return (size_t)opt->crop * opt->crop * sample_bytes;
}

const struct image_sink *mask_sink(struct mask *m, uint32_t orientation, uint8_t *dst)
{
	m->orientation = orientation;
	m->record = dst;
	return &m->sink;
}

void mask_source_size(const struct mask *m, uint32_t *width, uint32_t *height)
{
	*width = m->source_width;
	*height = m->source_height;
}
