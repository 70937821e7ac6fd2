/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn.c - an image set upright
 *
 * Every orientation is a walk over the result: from a corner, one step for each pixel of a row and another for each row.
 */
#include "tools/shardpack/turn.h"

struct turn_axes turn_axes(uint32_t orientation)
{
	return (struct turn_axes){
		.lies = orientation >= 5,
		.columns_back = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
		.rows_back = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
	};
}

/* Where the first pixel goes, and how far from there the one beside it and the one below it are, in pixels. */
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

static bool begin(void *context, uint32_t width, uint32_t height, struct image_window *wanted)
{
	struct turn *t = context;
	uint64_t bytes = (uint64_t)width * height * IMAGE_CHANNELS;
	bool lies = t->orientation >= 5;

	t->claim(t->context, bytes);
	if (!scratch_reserve(&t->pixels, bytes))
		return false;
	t->image = (struct image){t->pixels.data, lies ? height : width, lies ? width : height};
	t->in_width = width;
	t->row = 0;
	*wanted = (struct image_window){0, 0, width, height};
	return true;
}

static void rows(void *context, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	struct turn *t = context;
	struct walk w = walk_of(t->orientation, t->in_width, (ptrdiff_t)t->image.width * t->image.height / t->in_width);
	uint32_t x;

	for (; row_count; row_count--, pixels += stride_bytes, t->row++) {
		const uint8_t *from = pixels;
		ptrdiff_t to = (w.first + (ptrdiff_t)t->row * w.below) * IMAGE_CHANNELS;

		for (x = 0; x < t->in_width; x++, from += IMAGE_CHANNELS, to += w.beside * IMAGE_CHANNELS) {
			t->pixels.data[to] = from[0];
			t->pixels.data[to + 1] = from[1];
			t->pixels.data[to + 2] = from[2];
		}
	}
}

const struct image_sink *turn_sink(struct turn *t, uint32_t orientation)
{
	t->orientation = orientation;
	t->sink = (struct image_sink){begin, rows, t};
	return &t->sink;
}

void turn_free(struct turn *t)
{
	scratch_free(&t->pixels);
}
