/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_plan.c - what is asked of transforming, held against what a field is; and what samples become
 */
#include "libshard/transform/transform.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/error.h"

/* ---- the normalisation table: what each 8-bit sample of a channel becomes ---- */

/*
 * There are 256 of them, so no pixel is ever computed, and the CPU and the GPU cannot differ.  The
 * numbers are those of torchvision's ToTensor and Normalize on a CPU, ((x / 255) - mean) / std with
 * each operation rounded to f32, then rounded to the type of the output, as tensor.half() and
 * tensor.bfloat16() do.
 */

/*
 * The upper bits of `bits` without the last `drop`, to nearest, a half to even.  A carry into the
 * exponent is right.
 */
static uint32_t round_off(uint32_t bits, unsigned drop)
{
	uint32_t half = UINT32_C(1) << (drop - 1), rest = bits & (2 * half - 1), kept = bits >> drop;

	return kept + (rest > half || (rest == half && (kept & 1)));
}

static uint32_t round_to_f16(uint32_t bits)
{
	uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff, exponent = magnitude >> 23;

	if (magnitude > 0x7f800000)
		return sign | 0x7e00;
	if (exponent >= 127 + 16)
		return sign | 0x7c00;
	if (exponent >= 127 - 14) /* the exponent is counted from 15, no longer from 127 */
		return sign | round_off(magnitude - ((127 - 15) << 23), 13);
	if (exponent < 127 - 25) /* less than half of the least one */
		return sign;
	/* one of the subnormal */
	return sign | round_off((magnitude & 0x7fffff) | 0x800000, 13 + (127 - 14) - exponent);
}

uint32_t transform_round(float value, uint32_t dtype)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (dtype == SHARD_F32)
		return bits;
	if (dtype == SHARD_F16)
		return round_to_f16(bits);
	return (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : round_off(bits, 16);
}

/* ---- the field ---- */

static int plan_field(struct transform_plan *p, const struct shard_field *f, struct shard_error *err)
{
	uint32_t at = f->layout == SHARD_CHW && f->ndim == 3; /* where the height stands in the shape */
	struct shown name;

	show(&name, f->name);
	p->image_bytes = f->bytes;
	if (f->kind == SHARD_RAGGED) {
		/*
		 * Whole images: u8 [pixels,channels], of which the pixels vary.  Their sides are not in the
		 * schema.  Packed images are at most TRANSFORM_LONGER times longer than the largest square.
		 */
		if (f->dtype != SHARD_U8 || f->ndim != 2 || f->layout != SHARD_HWC || f->ragged_axes != 1)
			return error_set(err, SHARD_E_ARGUMENT,
					 "field %s is ragged; images that differ in size must be u8 [pixels,channels] "
					 "of layout hwc, of which axis 0 varies",
					 name.text);
		p->is_whole = true;
		p->channels = f->shape[1];
		p->in_height = TRANSFORM_LONGER * (uint32_t)__builtin_sqrt(f->shape[0]);
		p->in_height = p->in_width = p->in_height < TRANSFORM_SIDE_MAX ? p->in_height : TRANSFORM_SIDE_MAX;
	} else {
		if (f->dtype != SHARD_U8 || f->kind != SHARD_TENSOR)
			return error_set(err, SHARD_E_ARGUMENT, "field %s is a %s of %s; must be a tensor of u8",
					 name.text, shard_name(SHARD_NAME_KIND, f->kind),
					 shard_name(SHARD_NAME_DTYPE, f->dtype));
		if (f->ndim != 2 && (f->ndim != 3 || (f->layout != SHARD_HWC && f->layout != SHARD_CHW)))
			return error_set(
				err, SHARD_E_ARGUMENT,
				"field %s has %u dimensions and layout %s; must have 2, or 3 with layout hwc or chw%s",
				name.text, f->ndim, shard_name(SHARD_NAME_LAYOUT, f->layout),
				f->ndim == 3 ? ": pack it as an image, in Python with the type image[96,96,3]" : "");
		p->in_is_planar = at;
		p->in_height = f->shape[at];
		p->in_width = f->shape[at + 1];
		p->channels = f->ndim == 2 ? 1 : f->shape[at ? 0 : 2];
	}
	if (!p->channels || p->channels > TRANSFORM_CHANNELS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "field %s has %u channels; must be 1 to %u", name.text,
				 p->channels, TRANSFORM_CHANNELS_MAX);
	if (!p->in_height || p->in_height > TRANSFORM_SIDE_MAX || !p->in_width || p->in_width > TRANSFORM_SIDE_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "field %s is %u x %u; sides must be 1 to %u", name.text,
				 p->in_height, p->in_width, TRANSFORM_SIDE_MAX);
	return SHARD_OK;
}

/* ---- the options ---- */

static int plan_output(struct transform_plan *p, const struct shard_transform_options *o, struct shard_error *err)
{
	if (p->is_whole && (!o->height || !o->width))
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: output of %" PRIu32 " x %" PRIu32
				 ", but the images differ in size; name the height and the width of the output",
				 o->height, o->width);
	p->height = o->height ? o->height : p->in_height;
	p->width = o->width ? o->width : p->in_width;
	p->dtype = o->dtype ? o->dtype : SHARD_F32;
	p->is_planar = o->layout != SHARD_HWC;
	p->crop = o->crop;
	p->pixels = o->pixels;
	if (p->dtype != SHARD_U8 && p->dtype != SHARD_F16 && p->dtype != SHARD_BF16 && p->dtype != SHARD_F32)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: dtype is %" PRIu32 "; must be SHARD_U8, SHARD_F16, SHARD_BF16 or SHARD_F32",
				 p->dtype);
	if (o->layout && o->layout != SHARD_HWC && o->layout != SHARD_CHW)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: layout is %" PRIu32 "; must be SHARD_CHW or SHARD_HWC", o->layout);
	if (p->crop > SHARD_CROP_RESIZED)
		return error_set(err, SHARD_E_ARGUMENT, "options: crop is %" PRIu32 "; must be 0 to %d", p->crop,
				 SHARD_CROP_RESIZED);
	if (p->pixels > SHARD_PIXELS_PILLOW_13)
		return error_set(err, SHARD_E_ARGUMENT, "options: pixels is %" PRIu32 "; must be 0 to %d", p->pixels,
				 SHARD_PIXELS_PILLOW_13);
	if (p->height > TRANSFORM_SIDE_MAX || p->width > TRANSFORM_SIDE_MAX)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: output of %" PRIu32 " x %" PRIu32 "; sides must be at most %u", p->height,
				 p->width, TRANSFORM_SIDE_MAX);
	if (p->crop != SHARD_CROP_RESIZED && (p->height > p->in_height || p->width > p->in_width))
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: output of %" PRIu32 " x %" PRIu32
				 " cannot be cropped from images of %" PRIu32 " x %" PRIu32
				 "; ask for less, or for SHARD_CROP_RESIZED",
				 p->height, p->width, p->in_height, p->in_width);
	if (p->is_whole && p->crop != SHARD_CROP_RESIZED &&
	    (uint64_t)p->height * p->width * p->channels > p->image_bytes)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: output of %" PRIu32 " x %" PRIu32
				 " cannot be cropped from images of at most %" PRIu64
				 " pixels; ask for less, or for SHARD_CROP_RESIZED",
				 p->height, p->width, p->image_bytes / p->channels);
	p->element_bytes = (uint32_t)shard_dtype_bytes(p->dtype);
	p->row_bytes = (uint64_t)p->height * p->width * p->channels * p->element_bytes;
	return SHARD_OK;
}

static bool is_within(double x, double low, double high) /* nor is it NaN */
{
	return x >= low && x <= high;
}

static int plan_draws(struct transform_plan *p, const struct shard_transform_options *o, struct shard_error *err)
{
	double root;

	p->flip = o->flip;
	p->area_min = o->area_min == 0 ? 0.08 : o->area_min;
	p->area_max = o->area_max == 0 ? 1 : o->area_max;
	p->ratio_min = o->ratio_min == 0 ? 3.0 / 4 : o->ratio_min;
	p->ratio_max = o->ratio_max == 0 ? 4.0 / 3 : o->ratio_max;
	if (!is_within(p->flip, 0, 1))
		return error_set(err, SHARD_E_ARGUMENT, "options: flip is %g; must be a probability, 0 to 1", p->flip);
	if (!is_within(p->area_min, 0x1p-30, p->area_max) || !is_within(p->area_max, 0, 1))
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: area_min is %g and area_max %g; must ascend, above 0 and up to 1",
				 p->area_min, p->area_max);
	if (!is_within(p->ratio_min, 0x1p-15, p->ratio_max) || !is_within(p->ratio_max, 0, 0x1p15))
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: ratio_min is %g and ratio_max %g; must ascend, above 0 and up to 32768",
				 p->ratio_min, p->ratio_max);
	root = p->ratio_max / p->ratio_min;
	for (int i = 0; i < TRANSFORM_RATIO_BITS; i++)
		p->ratio_root[i] = root = __builtin_sqrt(root);
	return SHARD_OK;
}

/*
 * Mean and std of samples from 0 to 255, as other programs want them, would make every row nearly
 * one number.
 */
static int refuse_large(const char *name, uint32_t c, float value, struct shard_error *err)
{
	return error_set(err, SHARD_E_ARGUMENT,
			 "options: %s[%" PRIu32 "] is %g, but samples are from 0 to 1, so it must be at %s; "
			 "divide mean and std by 255: %g",
			 name, c, (double)value, value < 0 ? "least -1" : "most 1", (double)value / 255);
}

/* What each sample becomes: the normalisation table. */
static int plan_numbers(struct transform_plan *p, const struct shard_transform_options *o, struct shard_error *err)
{
	uint32_t infinity = p->dtype == SHARD_F32 ? 0x7f800000 : p->dtype == SHARD_F16 ? 0x7c00 : 0x7f80;

	for (uint32_t c = 0; c < p->channels; c++) {
		if (!(o->std[c] >= 0))
			return error_set(err, SHARD_E_ARGUMENT, "options: std[%" PRIu32 "] is %g; must be above 0", c,
					 (double)o->std[c]);
		if (o->mean[c] > 1 || o->mean[c] < -1)
			return refuse_large("mean", c, o->mean[c], err);
		if (o->std[c] > 1)
			return refuse_large("std", c, o->std[c], err);
		if (p->dtype == SHARD_U8 && (o->mean[c] != 0 || (o->std[c] != 0 && o->std[c] != 1)))
			return error_set(err, SHARD_E_ARGUMENT,
					 "options: mean[%" PRIu32 "] is %g and std[%" PRIu32 "] %g, but with SHARD_U8 "
					 "samples stay what they are; leave out mean and std, or ask for another dtype",
					 c, (double)o->mean[c], c, (double)o->std[c]);
	}
	for (uint32_t c = 0; c < p->channels; c++) {
		float by = o->std[c] == 0 ? 1 : o->std[c]; /* zero is what options have that were not set */

		for (uint32_t x = 0; x < 256; x++) {
			float value = (float)x / 255;

			value -= o->mean[c];
			p->bits[c][x] = p->dtype == SHARD_U8 ? x : transform_round(value / by, p->dtype);
			if (p->dtype != SHARD_U8 && (p->bits[c][x] & infinity) == infinity)
				return error_set(err, SHARD_E_ARGUMENT,
						 "options: mean[%" PRIu32 "] is %g and std[%" PRIu32
						 "] %g: numbers become too large for %s; give mean and std of samples "
						 "scaled to 0..1",
						 c, (double)o->mean[c], c, (double)o->std[c],
						 shard_name(SHARD_NAME_DTYPE, p->dtype));
		}
	}
	return SHARD_OK;
}

int transform_plan_make(struct transform_plan *p, const struct shard_field *field,
			const struct shard_transform_options *opt, struct shard_error *err)
{
	int rc;

	memset(p, 0, sizeof(*p));
	rc = plan_field(p, field, err);
	if (!rc)
		rc = plan_output(p, opt, err);
	if (!rc)
		rc = plan_draws(p, opt, err);
	return rc ? rc : plan_numbers(p, opt, err);
}

/* ---- images ---- */

struct transform_image transform_image_of(const struct transform_plan *p, const uint8_t *at,
					  const struct shard_size *size, uint32_t i)
{
	bool resizes = p->crop == SHARD_CROP_RESIZED;

	if (!p->is_whole)
		return (struct transform_image){at, p->in_height, p->in_width};
	if (!size[i].height)
		return (struct transform_image){at, resizes ? 1 : p->height, resizes ? 1 : p->width};
	return (struct transform_image){at, size[i].height, size[i].width};
}

int transform_image_check(const struct transform_plan *p, const struct transform_image *image, uint64_t record,
			  struct shard_error *err)
{
	if (image->height > p->in_height || image->width > p->in_width)
		return error_set(err, SHARD_E_UNSUPPORTED,
				 "record %" PRIu64 " has an image of %" PRIu32 " x %" PRIu32 "; of images of up to "
				 "%" PRIu64 " pixels, those with sides of at most %" PRIu32 " can be transformed",
				 record, image->height, image->width, p->image_bytes / p->channels, p->in_height);
	if (p->crop != SHARD_CROP_RESIZED && (p->height > image->height || p->width > image->width))
		return error_set(err, SHARD_E_ARGUMENT,
				 "record %" PRIu64 " has an image of %" PRIu32 " x %" PRIu32
				 ", and an output of %" PRIu32 " x %" PRIu32
				 " cannot be cropped from it; ask for less, or for SHARD_CROP_RESIZED",
				 record, image->height, image->width, p->height, p->width);
	return SHARD_OK;
}

/* ---- rows ---- */

int transform_rows_check(const struct transform_plan *p, const struct shard_transform_row *row, uint64_t row_count,
			 uint32_t records, const struct shard_size *size, struct shard_error *err)
{
	for (uint64_t i = 0; i < row_count; i++, row++) {
		struct transform_image in;

		if (row->from >= records)
			return error_set(err, SHARD_E_ARGUMENT,
					 "rows: row %" PRIu64 " is from record %" PRIu32 "; must be below %" PRIu32
					 ", the records of the batch",
					 i, row->from, records);
		in = transform_image_of(p, NULL, size, row->from);
		if (!row->width || row->width > in.width || row->x > in.width - row->width || !row->height ||
		    row->height > in.height || row->y > in.height - row->height)
			return error_set(err, SHARD_E_ARGUMENT,
					 "rows: row %" PRIu64 " is %" PRIu32 " x %" PRIu32 " pixels from (%" PRIu32
					 ", %" PRIu32 "); must lie within %" PRIu32 " x %" PRIu32,
					 i, row->height, row->width, row->y, row->x, in.height, in.width);
		if (p->crop != SHARD_CROP_RESIZED && (row->width != p->width || row->height != p->height))
			return error_set(err, SHARD_E_ARGUMENT,
					 "rows: row %" PRIu64 " is %" PRIu32 " x %" PRIu32
					 " pixels and the output %" PRIu32 " x %" PRIu32
					 "; only SHARD_CROP_RESIZED resizes",
					 i, row->height, row->width, p->height, p->width);
	}
	return SHARD_OK;
}
