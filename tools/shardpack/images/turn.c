/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn.c - an image set upright
 *
 * Every orientation is a walk over the result: from a corner, one step for each pixel of a row and
 * another for each row.
 */
#include "tools/shardpack/images/images.h"

#include <string.h>

struct turn_axes turn_axes(uint32_t orientation)
{
	return (struct turn_axes){
		.lies = orientation >= 5,
		.columns_back = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
		.rows_back = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
	};
}

/*
 * Where the first pixel goes, and how far from there the one beside it and the one below it are, in
 * pixels.
 */
struct walk {
	ptrdiff_t first, beside, below;
};

static struct walk walk_of(uint32_t orientation, ptrdiff_t width, ptrdiff_t height)
{
	struct turn_axes axes = turn_axes(orientation);
	struct walk w = {0, axes.lies ? height : 1, axes.lies ? 1 : width};

	if (axes.columns_back) {
		w.first += (width - 1) * w.beside;
		w.beside = -w.beside;
	}
	if (axes.rows_back) {
		w.first += (height - 1) * w.below;
		w.below = -w.below;
	}
	return w;
}

static bool begin(void *context, const struct image_size *size, struct image_window *wanted)
{
	struct turn *t = context;
	struct turn_axes axes = turn_axes(t->orientation);
	uint32_t columns = image_columns(size), row_count = image_rows(size);
	uint64_t bytes = (uint64_t)columns * row_count * t->pixel_bytes;

	t->claim(t->context, bytes);
	if (!scratch_reserve(&t->pixels, bytes))
		return false;
	t->size = (struct image_size){.width = axes.lies ? size->height : size->width,
				      .height = axes.lies ? size->width : size->height,
				      .scale = size->scale,
				      .cut_left = axes.lies ? axes.rows_back : axes.columns_back,
				      .cut_top = axes.lies ? axes.columns_back : axes.rows_back};
	t->in_columns = columns;
	t->row = 0;
	*wanted = (struct image_window){0, 0, columns, row_count};
	return true;
}

/* The sink behind decides, and knows the upright image. */
static bool scaling(void *context, uint32_t width, uint32_t height, struct image_scaling *out)
{
	const struct turn *t = context;
	bool lies = turn_axes(t->orientation).lies, ok;
	uint32_t upright_width;

	*out = (struct image_scaling){.scale = 1, .width = width, .height = height};
	if (!t->to->scaling)
		return true;
	ok = t->to->scaling(t->to->context, lies ? height : width, lies ? width : height, out);
	upright_width = out->width;
	out->width = lies ? out->height : out->width;
	out->height = lies ? upright_width : out->height;
	return ok;
}

/* The same. */
static bool fits(void *context, uint32_t width, uint32_t height, char *why, size_t why_bytes)
{
	const struct turn *t = context;
	bool lies = turn_axes(t->orientation).lies;

	return !t->to->fits ||
	       t->to->fits(t->to->context, lies ? height : width, lies ? width : height, why, why_bytes);
}

static void rows(void *context, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	struct turn *t = context;
	bool lies = turn_axes(t->orientation).lies, wide = t->pixel_bytes == IMAGE_WIDE_BYTES;
	struct walk w = walk_of(t->orientation, t->in_columns, lies ? image_columns(&t->size) : image_rows(&t->size));

	for (; row_count; row_count--, pixels += stride_bytes, t->row++) {
		const uint8_t *from = pixels;
		ptrdiff_t to = (w.first + (ptrdiff_t)t->row * w.below) * t->pixel_bytes;

		for (uint32_t x = 0; wide && x < t->in_columns; x++, from += IMAGE_WIDE_BYTES) {
			memcpy(t->pixels.data + to, from, IMAGE_WIDE_BYTES);
			to += w.beside * IMAGE_WIDE_BYTES;
		}
		for (uint32_t x = 0; !wide && x < t->in_columns;
		     x++, from += IMAGE_CHANNELS, to += w.beside * IMAGE_CHANNELS) {
			t->pixels.data[to] = from[0];
			t->pixels.data[to + 1] = from[1];
			t->pixels.data[to + 2] = from[2];
		}
	}
}

const struct image_sink *turn_sink(struct turn *t, uint32_t orientation, bool wide, const struct image_sink *to)
{
	t->pixel_bytes = wide ? IMAGE_WIDE_BYTES : IMAGE_CHANNELS;
	t->orientation = orientation;
	t->to = to;
	t->sink = (struct image_sink){begin, rows, t, scaling, fits};
	return &t->sink;
}

bool turn_finish(struct turn *t)
{
	return image_give(t->to, &t->size, t->pixels.data, t->pixel_bytes);
}

void turn_free(struct turn *t)
{
	scratch_free(&t->pixels);
}
