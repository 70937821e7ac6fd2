/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_image.c - sizes, offsets, and one call of the resampler
 *
 * Resize and crop are one step: the resampler computes the window that survives and
 * nothing else, and writes it into the record.
 */
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const transform_filter_names[] = {
	[RESIZE_BOX] = "box",
	[RESIZE_BILINEAR] = "bilinear",
	[RESIZE_BICUBIC] = "bicubic",
	[RESIZE_LANCZOS] = "lanczos",
	NULL,
};
const char *const transform_fit_names[] = {
	[FIT_SHORT] = "short", [FIT_LONG] = "long", [FIT_STRETCH] = "stretch",
	[FIT_PAD] = "pad",     [FIT_AREA] = "area", NULL,
};
const char *const transform_scale_names[] = {
	[SCALE_1] = "1", [SCALE_2] = "2", [SCALE_4] = "4", [SCALE_8] = "8", [SCALE_AUTO] = "auto", NULL,
};
const char *const transform_pixels_names[] = {
	[RESIZE_ROWS_FIRST] = "rows-first",
	[RESIZE_PILLOW_12] = "pillow-12",
	[RESIZE_PILLOW_13] = "pillow-13",
	NULL,
};
const char *const transform_layout_names[] = {[IMAGE_HWC] = "hwc", [IMAGE_CHW] = "chw", NULL};
const char *const transform_samples_names[] = {
	[IMAGE_U8] = "u8", [IMAGE_F16] = "f16", [IMAGE_BF16] = "bf16", [IMAGE_F32] = "f32", [IMAGE_U16] = "u16", NULL,
};

struct transform {
	struct transform_options opt;
	struct resizer *resizer;
	struct wide_resizer *wide; /* in its place if 16 bits a sample are read */
	struct image_sink sink;
	uint32_t source_width, source_height;
	uint8_t *record;  /* being written */
	uint8_t *resized; /* its samples before they are normalised: `record`, unless they are */
	struct scratch normalised_from;
	struct normal_table normal;
	uint32_t *wide_normal; /* the same of 16 bits a sample, or NULL */
};

static size_t sample_count(const struct transform_options *opt)
{
	return (size_t)opt->crop * opt->crop * IMAGE_CHANNELS;
}

/* n * part / whole, a side of an image: at least 1. */
static uint32_t scaled(uint64_t n, uint64_t part, uint64_t whole)
{
	uint64_t side = n * part / whole;

	return side ? (uint32_t)side : 1;
}

/* The same to the nearest, with the two roundings of Python's `part / whole * n`. */
static uint32_t scaled_nearest(uint32_t n, uint32_t part, uint32_t whole)
{
	double side = nearbyint((double)part / whole * n);

	return side >= 1 ? (uint32_t)side : 1;
}

#define AREA_SIDE_MAX(n) (4 * (uint64_t)(n))

static bool area_fits(uint32_t n, uint64_t s, uint32_t shorter, uint32_t longer)
{
	uint64_t side = s * longer / shorter;

	return s * side <= (uint64_t)n * n && side <= AREA_SIDE_MAX(n);
}

/* The s of FIT_AREA, 0 if there is none.  It is at most n: s * side is at least s * s. */
static uint32_t area_side(uint32_t n, uint32_t shorter, uint32_t longer)
{
	uint32_t fits = 0, above = n + 1;

	while (above - fits > 1) {
		uint32_t s = fits + (above - fits) / 2;

		if (area_fits(n, s, shorter, longer))
			fits = s;
		else
			above = s;
	}
	return fits;
}

bool transform_has_geometry(const struct transform_options *opt, uint32_t width, uint32_t height)
{
	return opt->fit != FIT_AREA ||
	       area_fits(opt->resize, 1, width < height ? width : height, width < height ? height : width);
}

/* The size after the resize.  Fits: 65,500 * 65,500 < 2^32. */
static void resized_size(const struct transform_options *opt, uint32_t w, uint32_t h, uint32_t *width, uint32_t *height)
{
	uint32_t n = opt->resize;

	*width = n ? n : w;
	*height = n ? n : h;
	if (!n || w == h)
		return;
	switch (opt->fit) {
	case FIT_SHORT:
		*(w < h ? height : width) = w < h ? scaled(n, h, w) : scaled(n, w, h);
		break;
	case FIT_LONG:
		*(w < h ? width : height) = w < h ? scaled(n, w, h) : scaled(n, h, w);
		break;
	case FIT_STRETCH:
		break;
	case FIT_PAD:
		*(w < h ? width : height) = w < h ? scaled_nearest(n, w, h) : scaled_nearest(n, h, w);
		break;
	case FIT_AREA:
		n = area_side(n, w < h ? w : h, w < h ? h : w);
		*width = w < h ? n : scaled(n, w, h);
		*height = w < h ? scaled(n, h, w) : n;
		break;
	}
}

static uint32_t half_to_even(uint32_t n)
{
	uint32_t half = n / 2;

	return half + (n % 2 ? half % 2 : 0);
}

static struct transform_span center(const struct transform_options *opt, uint32_t size)
{
	uint32_t crop = opt->crop;

	if (opt->fit == FIT_AREA)
		return (struct transform_span){0, 0, size};
	if (size > crop)
		return (struct transform_span){half_to_even(size - crop), 0, crop};
	return (struct transform_span){0, opt->fit == FIT_PAD ? half_to_even(crop - size) : (crop - size) / 2, size};
}

struct transform_geometry transform_geometry(const struct transform_options *opt, uint32_t width, uint32_t height)
{
	struct transform_geometry g;

	resized_size(opt, width, height, &g.width, &g.height);
	g.across = center(opt, g.width);
	g.down = center(opt, g.height);
	return g;
}

/* struct image_sink's scaling: the largest that leaves enough, or the one that was asked for. */
static bool scaling(void *context, uint32_t width, uint32_t height, struct image_scaling *out)
{
	const struct transform *t = context;
	struct transform_geometry g = transform_geometry(&t->opt, width, height);
	uint32_t scale = t->opt.scale == SCALE_AUTO ? 1u << SCALE_8 : 1u << t->opt.scale;

	while (t->opt.scale == SCALE_AUTO && scale > 1 && (width / scale < g.width || height / scale < g.height))
		scale /= 2;
	*out = (struct image_scaling){scale, g.width, g.height};
	return scale == 1 || (width / scale >= g.width && height / scale >= g.height);
}

/* struct image_sink's fits. */
static bool fits(void *context, uint32_t width, uint32_t height, char *why, size_t why_bytes)
{
	const struct transform *t = context;
	uint64_t n = t->opt.resize;

	if (transform_has_geometry(&t->opt, width, height))
		return true;
	snprintf(why, why_bytes,
		 "no whole image of this shape has at most %" PRIu64 " pixels and sides of at most %" PRIu64
		 "; crop it, or use another fit than area",
		 n * n, AREA_SIDE_MAX(n));
	return false;
}

/* struct image_sink's begin: where the record is, is known. */
static bool begin(void *context, const struct image_size *size, struct image_window *wanted)
{
	struct transform *t = context;
	struct transform_geometry g = transform_geometry(&t->opt, size->width, size->height);
	uint32_t crop = t->opt.crop, columns = t->opt.fit == FIT_AREA ? g.width : crop;
	bool planes = t->opt.layout == IMAGE_CHW;
	size_t sample_bytes = t->wide ? sizeof(uint16_t) : 1, all_bytes = sample_bytes * sample_count(&t->opt);
	size_t pixel_bytes = sample_bytes * (planes ? 1 : IMAGE_CHANNELS), row_bytes = columns * pixel_bytes;
	struct resize_job job = {.in_width = image_columns(size),
				 .in_height = image_rows(size),
				 .width = g.width,
				 .height = g.height,
				 .filter = t->opt.filter,
				 .pixels = t->opt.pixels};

	job.across = (struct resize_box){.length = (double)size->width / size->scale};
	job.down = (struct resize_box){.length = (double)size->height / size->scale};
	job.across.from = size->cut_left ? job.in_width - job.across.length : 0;
	job.down.from = size->cut_top ? job.in_height - job.down.length : 0;
	t->source_width = size->width;
	t->source_height = size->height;
	t->resized = t->record;
	if (image_is_normalised(t->opt.samples)) {
		if (!scratch_reserve(&t->normalised_from, all_bytes))
			return false;
		t->resized = t->normalised_from.data;
	}
	job.window = (struct image_window){g.across.from, g.down.from, g.across.count, g.down.count};
	job.target.pixels = t->resized + g.down.to * row_bytes + g.across.to * pixel_bytes;
	job.target.row_bytes = row_bytes;
	job.target.plane_bytes = planes ? sample_bytes * crop * crop : 0;
	if (t->opt.fit == FIT_AREA)
		memset(t->resized + g.height * row_bytes, 0, all_bytes - g.height * row_bytes);
	else if (g.across.count < crop || g.down.count < crop)
		memset(t->resized, 0, all_bytes);
	if (t->wide)
		return wide_resizer_begin(t->wide, &job, wanted);
	return resizer_begin(t->resizer, &job, wanted);
}

static void rows(void *context, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	struct transform *t = context;

	if (t->wide)
		wide_resizer_rows(t->wide, pixels, stride_bytes, row_count);
	else
		resizer_rows(t->resizer, pixels, stride_bytes, row_count);
}

struct transform *transform_open(const struct transform_options *opt)
{
	struct transform *t = calloc(1, sizeof(*t));
	uint32_t channel;

	if (!t)
		return NULL;
	t->opt = *opt;
	t->sink = (struct image_sink){begin, rows, t, scaling, fits};
	if (image_is_normalised(opt->samples) && opt->wide)
		t->wide_normal = normal_open_wide(opt->samples, &opt->normal);
	else if (image_is_normalised(opt->samples))
		normal_fill(&t->normal, opt->samples, &opt->normal, &channel);
	if (opt->wide)
		t->wide = wide_resizer_open();
	else
		t->resizer = resizer_open();
	if ((t->wide || t->resizer) && (t->wide_normal || !opt->wide || !image_is_normalised(opt->samples)))
		return t;
	transform_close(t);
	return NULL;
}

void transform_close(struct transform *t)
{
	if (!t)
		return;
	resizer_close(t->resizer);
	wide_resizer_close(t->wide);
	free(t->wide_normal);
	scratch_free(&t->normalised_from);
	free(t);
}

const struct image_sink *transform_sink(struct transform *t, uint8_t *dst)
{
	t->record = dst;
	return &t->sink;
}

void transform_source_size(const struct transform *t, uint32_t *width, uint32_t *height)
{
	*width = t->source_width;
	*height = t->source_height;
}

void transform_finish(struct transform *t)
{
	size_t pixels = (size_t)t->opt.crop * t->opt.crop;

	if (t->wide_normal)
		normal_apply_wide(t->wide_normal, t->opt.samples, (const void *)t->resized, pixels, t->opt.layout,
				  t->record);
	else if (image_is_normalised(t->opt.samples))
		normal_apply(&t->normal, t->resized, pixels, t->opt.layout, t->record);
}
