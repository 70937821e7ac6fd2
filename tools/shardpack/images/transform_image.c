/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_image.c - a decoded image to its record: set upright, resized and cropped, normalised
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shardpack/images/images.h"

/* ---- an image set upright ---- */

/*
 * Every orientation is a walk over the result: from a corner, one step for each pixel of a row and
 * another for each row.
 */

struct turn_axes turn_axes(uint32_t orientation)
{
	return (struct turn_axes){
		.lies = orientation >= 5,
		.columns_back = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
		.rows_back = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
	};
}

static bool turn_begin(void *context, const struct image_size *size, struct image_window *wanted)
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
static bool turn_scaling(void *context, uint32_t width, uint32_t height, struct image_scaling *out)
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
static bool turn_fits(void *context, uint32_t width, uint32_t height, char *why, size_t why_bytes)
{
	const struct turn *t = context;
	bool lies = turn_axes(t->orientation).lies;

	return !t->to->fits ||
	       t->to->fits(t->to->context, lies ? height : width, lies ? width : height, why, why_bytes);
}

static void turn_rows(void *context, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	struct turn *t = context;
	struct turn_axes axes = turn_axes(t->orientation);
	ptrdiff_t width = t->in_columns, height = axes.lies ? image_columns(&t->size) : image_rows(&t->size);
	/* where the first pixel goes, and how far from there the ones beside and below it go, in pixels */
	ptrdiff_t first = 0, beside = axes.lies ? height : 1, below = axes.lies ? 1 : width;
	bool wide = t->pixel_bytes == IMAGE_WIDE_BYTES;

	if (axes.columns_back) {
		first += (width - 1) * beside;
		beside = -beside;
	}
	if (axes.rows_back) {
		first += (height - 1) * below;
		below = -below;
	}
	for (; row_count; row_count--, pixels += stride_bytes, t->row++) {
		const uint8_t *from = pixels;
		ptrdiff_t to = (first + (ptrdiff_t)t->row * below) * t->pixel_bytes;

		for (uint32_t x = 0; wide && x < t->in_columns; x++, from += IMAGE_WIDE_BYTES) {
			memcpy(t->pixels.data + to, from, IMAGE_WIDE_BYTES);
			to += beside * IMAGE_WIDE_BYTES;
		}
		for (uint32_t x = 0; !wide && x < t->in_columns; x++, from += IMAGE_CHANNELS) {
			t->pixels.data[to] = from[0];
			t->pixels.data[to + 1] = from[1];
			t->pixels.data[to + 2] = from[2];
			to += beside * IMAGE_CHANNELS;
		}
	}
}

const struct image_sink *turn_sink(struct turn *t, uint32_t orientation, bool wide, const struct image_sink *to)
{
	t->pixel_bytes = wide ? IMAGE_WIDE_BYTES : IMAGE_CHANNELS;
	t->orientation = orientation;
	t->to = to;
	t->sink = (struct image_sink){turn_begin, turn_rows, t, turn_scaling, turn_fits};
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

/* ---- samples to normalised numbers, through a table ---- */

struct float_form {
	uint32_t exponent_bits, fraction_bits;
};

static const struct float_form forms[] = {[IMAGE_F16] = {5, 10}, [IMAGE_BF16] = {8, 7}, [IMAGE_F32] = {8, 23}};

uint32_t normal_sample_bytes(enum image_samples samples)
{
	return samples == IMAGE_U8 ? 1 : samples == IMAGE_F32 ? 4 : 2;
}

static uint32_t infinity_bits(const struct float_form *form)
{
	return ((UINT32_C(1) << form->exponent_bits) - 1) << form->fraction_bits;
}

/*
 * The nearest number of that form, a half to even; subnormal ones are kept.  Scaling by a power of
 * two is exact, so there is one rounding.  A fraction that is rounded up to the next power of two
 * carries into the exponent, as it must.
 */
static uint32_t round_to(double value, const struct float_form *form)
{
	uint32_t sign = signbit(value) ? UINT32_C(1) << (form->exponent_bits + form->fraction_bits) : 0;
	int least = 2 - (1 << (form->exponent_bits - 1)), exponent, steps;
	double fraction;

	if (!isfinite(value))
		return sign | infinity_bits(form);
	fraction = frexp(fabs(value), &exponent); /* 0.5 to 1, or 0 */
	exponent = fraction > 0 && exponent - 1 > least ? exponent - 1 : least;
	steps = exponent - least;
	if (steps >= (1 << form->exponent_bits) - 2)
		return sign | infinity_bits(form);
	return sign | (((uint32_t)steps << form->fraction_bits) +
		       (uint32_t)nearbyint(ldexp(fabs(value), (int)form->fraction_bits - exponent)));
}

bool normal_fill(struct normal_table *t, enum image_samples samples, const struct normal *n, uint32_t *channel)
{
	const struct float_form *form = &forms[samples];
	uint32_t sign = UINT32_C(1) << (form->exponent_bits + form->fraction_bits);

	t->samples = samples;
	for (uint32_t c = 0; c < IMAGE_CHANNELS; c++) {
		*channel = c;
		if (!(n->std[c] > 0))
			return false;
		for (uint32_t x = 0; x < 256; x++) {
			double value = x / 255.0;

			value -= n->mean[c];
			t->bits[c][x] = round_to(value / n->std[c], form);
			if ((t->bits[c][x] & ~sign) >= infinity_bits(form))
				return false;
		}
	}
	return true;
}

/* `step` 1: channels side by side, from 0 on; 0: all of one channel. */
static void apply(const struct normal_table *t, const uint8_t *src, size_t count, uint32_t channel, uint32_t step,
		  uint8_t *dst)
{
	uint32_t c = channel;

	if (t->samples == IMAGE_F32) {
		for (size_t i = 0; i < count; i++) {
			memcpy(dst + 4 * i, &t->bits[c][src[i]], 4);
			c = step ? (c + 1) % IMAGE_CHANNELS : channel;
		}
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint16_t bits = (uint16_t)t->bits[c][src[i]];

		memcpy(dst + 2 * i, &bits, 2);
		c = step ? (c + 1) % IMAGE_CHANNELS : channel;
	}
}

void normal_apply(const struct normal_table *t, const uint8_t *src, size_t pixel_count, enum image_layout layout,
		  uint8_t *dst)
{
	size_t plane_bytes = pixel_count * normal_sample_bytes(t->samples);

	if (layout == IMAGE_HWC)
		apply(t, src, pixel_count * IMAGE_CHANNELS, 0, 1, dst);
	for (uint32_t c = 0; layout == IMAGE_CHW && c < IMAGE_CHANNELS; c++)
		apply(t, src + c * pixel_count, pixel_count, c, 0, dst + c * plane_bytes);
}

#define WIDE_COUNT 65536 /* samples of 16 bits */

/* The same of 16 bits: a table, or NULL without memory; normal_fill() has found `n` good. */
static uint32_t *normal_open_wide(enum image_samples samples, const struct normal *n)
{
	uint32_t *table = malloc(IMAGE_CHANNELS * WIDE_COUNT * sizeof(*table));

	for (uint32_t i = 0; table && i < IMAGE_CHANNELS * WIDE_COUNT; i++) {
		double value = i % WIDE_COUNT / (double)UINT16_MAX;

		value -= n->mean[i / WIDE_COUNT];
		table[i] = round_to(value / n->std[i / WIDE_COUNT], &forms[samples]);
	}
	return table;
}

static void normal_apply_wide(const uint32_t *table, enum image_samples samples, const uint16_t *src,
			      size_t pixel_count, enum image_layout layout, uint8_t *dst)
{
	uint32_t bytes = normal_sample_bytes(samples);

	for (size_t i = 0; i < IMAGE_CHANNELS * pixel_count; i++, dst += bytes) {
		size_t c = layout == IMAGE_HWC ? i % IMAGE_CHANNELS : i / pixel_count;
		uint32_t bits = table[c * WIDE_COUNT + src[i]];
		uint16_t half = (uint16_t)bits;

		if (bytes == sizeof(bits))
			memcpy(dst, &bits, sizeof(bits));
		else
			memcpy(dst, &half, sizeof(half));
	}
}

/* ---- sizes, offsets, and one call of the resampler ---- */

/*
 * Resize and crop are one step: the resampler computes the window that survives and
 * nothing else, and writes it into the record.
 */

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

struct transform_geometry transform_geometry(const struct transform_options *opt, uint32_t w, uint32_t h)
{
	uint32_t n = opt->resize;
	struct transform_geometry g = {.width = n ? n : w, .height = n ? n : h};
	uint32_t *shorter = w < h ? &g.width : &g.height, *longer = w < h ? &g.height : &g.width;
	uint32_t less = w < h ? w : h, more = w < h ? h : w; /* 65,500 * 65,500 < 2^32 */

	if (n && w != h) {
		switch (opt->fit) {
		case FIT_SHORT:
			*longer = scaled(n, more, less);
			break;
		case FIT_LONG:
			*shorter = scaled(n, less, more);
			break;
		case FIT_STRETCH:
			break;
		case FIT_PAD:
			*shorter = scaled_nearest(n, less, more);
			break;
		case FIT_AREA:
			*shorter = area_side(n, less, more);
			*longer = scaled(*shorter, more, less);
			break;
		}
	}
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
	size_t sample_bytes = t->wide ? sizeof(uint16_t) : 1, all_bytes = sample_bytes * IMAGE_CHANNELS * crop * crop;
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
