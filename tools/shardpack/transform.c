/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.c - sizes, offsets, and one call of the resampler
 *
 * Resize and crop are one step: the resampler computes the window that survives and
 * nothing else, and writes it into the record.
 */
#include "tools/shardpack/transform.h"

#include <string.h>

struct transform {
	struct transform_options opt;
	struct resizer *resizer;
};

struct transform *transform_open(const struct transform_options *opt)
{
	struct transform *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->opt = *opt;
	t->resizer = resizer_open();
	if (!t->resizer) {
		transform_close(t);
		return NULL;
	}
	return t;
}

void transform_close(struct transform *t)
{
	if (!t)
		return;
	resizer_close(t->resizer);
	free(t);
}

size_t transform_record_bytes(const struct transform_options *opt)
{
	return (size_t)opt->crop * opt->crop * IMAGE_CHANNELS;
}

/* The size after Resize(short_side); 0 changes nothing.  Fits: 65,500 * 65,500 < 2^32. */
static void resized_size(const struct image *src, uint32_t short_side, uint32_t *width, uint32_t *height)
{
	uint64_t w = src->width, h = src->height;

	*width = src->width;
	*height = src->height;
	if (!short_side)
		return;
	*width = w <= h ? short_side : (uint32_t)(short_side * w / h);
	*height = w <= h ? (uint32_t)(short_side * h / w) : short_side;
}

/* Along one axis: which part of the image is kept, and where in the record it goes. */
struct span {
	uint32_t from, to, count;
};

static struct span center(uint32_t size, uint32_t crop)
{
	uint32_t half;

	if (size <= crop)
		return (struct span){0, (crop - size) / 2, size};
	/* (size - crop) / 2, a half going to the even side */
	half = (size - crop) / 2;
	if ((size - crop) % 2)
		half += half % 2;
	return (struct span){half, 0, crop};
}

bool transform_run(struct transform *t, const struct image *src, uint8_t *dst)
{
	uint32_t crop = t->opt.crop, width, height;
	bool planes = t->opt.layout == IMAGE_CHW;
	size_t pixel_bytes = planes ? 1 : IMAGE_CHANNELS, row_bytes = crop * pixel_bytes;
	struct span across, down;
	struct resize_target target = {.row_bytes = row_bytes, .plane_bytes = planes ? (size_t)crop * crop : 0};

	resized_size(src, t->opt.resize_short, &width, &height);
	across = center(width, crop);
	down = center(height, crop);
	target.pixels = dst + down.to * row_bytes + across.to * pixel_bytes;
	if (across.count < crop || down.count < crop)
		memset(dst, 0, transform_record_bytes(&t->opt));
	return resizer_run(t->resizer, src, width, height, t->opt.filter,
			   &(struct resize_window){across.from, down.from, across.count, down.count}, &target);
}
