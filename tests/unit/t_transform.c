/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transform.c - what transforming refuses, and how numbers are rounded; what it makes of images
 * is tests/twin/transform.py's affair
 */
#include <math.h>

#include "libshard/transform/transform.h"
#include "shard_transform.h"
#include "tests/test.h"

#define COUNT(array_) (sizeof(array_) / sizeof(array_[0]))

static const struct shard_field photo = {.name = "image",
					 .dtype = SHARD_U8,
					 .layout = SHARD_HWC,
					 .ndim = 3,
					 .shape = {256, 300, 3},
					 .bytes = 256 * 300 * 3};
static struct transform_plan plan;
static struct shard_error err;

/* ---- fields ---- */

TEST(fields_that_are_no_images)
{
	static const struct {
		struct shard_field field;
		const char *message;
	} rows[] = {
		{{.name = "label", .dtype = SHARD_I64}, "field label is a tensor of i64; must be a tensor of u8"},
		{{.name = "text", .dtype = SHARD_U8, .kind = SHARD_STRING, .ndim = 1, .shape = {9}},
		 "field text is a string of u8; must be a tensor of u8"},
		{{.name = "tokens", .dtype = SHARD_U8, .ndim = 1, .shape = {9}},
		 "field tokens has 1 dimensions and layout none; must have 2, or 3 with layout hwc or chw"},
		{{.name = "cube", .dtype = SHARD_U8, .ndim = 3, .shape = {9, 9, 9}},
		 "field cube has 3 dimensions and layout none; must have 2, or 3 with layout hwc or chw: pack it as an "
		 "image, in Python with the type image[96,96,3]"},
		{{.name = "bands", .dtype = SHARD_U8, .layout = SHARD_CHW, .ndim = 3, .shape = {5, 9, 9}},
		 "field bands has 5 channels; must be 1 to 4"},
		{{.name = "long", .dtype = SHARD_U8, .ndim = 2, .shape = {9, 32768}},
		 "field long is 9 x 32768; sides must be 1 to 32767"},
	};
	struct shard_transform_options o = {.size = sizeof(o)};

	for (size_t i = 0; i < COUNT(rows); i++) {
		CHECK_EQ(transform_plan_make(&plan, &rows[i].field, &o, &err), SHARD_E_ARGUMENT);
		CHECK_STR(err.message, rows[i].message);
	}
}

TEST(shapes_of_fields)
{
	static const struct {
		struct shard_field field;
		uint32_t channels, height, width;
	} rows[] = {{{.name = "a", .dtype = SHARD_U8, .layout = SHARD_HWC, .ndim = 3, .shape = {5, 6, 4}}, 4, 5, 6},
		    {{.name = "a", .dtype = SHARD_U8, .layout = SHARD_CHW, .ndim = 3, .shape = {1, 5, 6}}, 1, 5, 6},
		    {{.name = "a", .dtype = SHARD_U8, .layout = SHARD_HWC, .ndim = 2, .shape = {5, 6}}, 1, 5, 6},
		    {{.name = "a", .dtype = SHARD_U8, .layout = SHARD_CHW, .ndim = 2, .shape = {5, 6}}, 1, 5, 6}};
	struct shard_transform_options o = {.size = sizeof(o)};

	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("row %zu", i);
		CHECK_EQ(transform_plan_make(&plan, &rows[i].field, &o, &err), SHARD_OK);
		CHECK(plan.channels == rows[i].channels && plan.in_height == rows[i].height &&
		      plan.in_width == rows[i].width);
		CHECK(plan.height == 5 && plan.width == 6 && plan.dtype == SHARD_F32 && plan.is_planar);
		CHECK_EQ(plan.row_bytes, 5 * 6 * rows[i].channels * 4);
	}
}

/* ---- options ---- */

TEST(options_that_do_not_fit)
{
	static const struct {
		struct shard_transform_options o;
		const char *message;
	} rows[] = {
		{{.dtype = SHARD_F64}, "options: dtype is 12; must be SHARD_U8, SHARD_F16, SHARD_BF16 or SHARD_F32"},
		{{.layout = SHARD_YUV420}, "options: layout is 3; must be SHARD_CHW or SHARD_HWC"},
		{{.crop = 3}, "options: crop is 3; must be 0 to 2"},
		{{.crop = SHARD_CROP_RESIZED, .width = 32768},
		 "options: output of 256 x 32768; sides must be at most 32767"},
		{{.height = 224, .width = 301},
		 "options: output of 224 x 301 cannot be cropped from images of 256 x 300; ask for less, or for "
		 "SHARD_CROP_RESIZED"},
		{{.flip = 1.5}, "options: flip is 1.5; must be a probability, 0 to 1"},
		{{.flip = NAN}, "options: flip is nan; must be a probability, 0 to 1"},
		{{.area_min = 0.5, .area_max = 0.4},
		 "options: area_min is 0.5 and area_max 0.4; must ascend, above 0 and up to 1"},
		{{.area_max = 1.1}, "options: area_min is 0.08 and area_max 1.1; must ascend, above 0 and up to 1"},
		{{.area_min = -1}, "options: area_min is -1 and area_max 1; must ascend, above 0 and up to 1"},
		{{.ratio_min = 2},
		 "options: ratio_min is 2 and ratio_max 1.33333; must ascend, above 0 and up to 32768"},
		{{.ratio_max = INFINITY},
		 "options: ratio_min is 0.75 and ratio_max inf; must ascend, above 0 and up to 32768"},
		{{.std = {1, -1}}, "options: std[1] is -1; must be above 0"},
		{{.std = {1, 1, NAN}}, "options: std[2] is nan; must be above 0"},
		{{.mean = {0.485f, 116.28f}, .std = {0.229f, 57.12f}},
		 "options: mean[1] is 116.28, but samples are from 0 to 1, so it must be at most 1; divide mean and "
		 "std by 255: 0.456"},
		{{.mean = {-1.5f}},
		 "options: mean[0] is -1.5, but samples are from 0 to 1, so it must be at least -1; divide mean and "
		 "std "
		 "by 255: -0.00588235"},
		{{.std = {1, 1, 57.375f}},
		 "options: std[2] is 57.375, but samples are from 0 to 1, so it must be at most 1; divide mean and std "
		 "by 255: 0.225"},
		{{.dtype = SHARD_F16, .std = {1, 1, 1e-5f}},
		 "options: mean[2] is 0 and std[2] 1e-05: numbers "
		 "become too large for f16; give mean and std of "
		 "samples scaled to 0..1"},
		{{.mean = {NAN}},
		 "options: mean[0] is nan and std[0] 0: numbers become too large for f32; give "
		 "mean and std of samples scaled to 0..1"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("row %zu", i);
		CHECK_EQ(transform_plan_make(&plan, &photo, &rows[i].o, &err), SHARD_E_ARGUMENT);
		CHECK_STR(err.message, rows[i].message);
	}
}

TEST(rows_that_do_not_fit)
{
	static const struct {
		uint32_t crop;
		struct shard_transform_row row;
		const char *message;
	} rows[] = {
		{SHARD_CROP_CENTER,
		 {.from = 3, .width = 20, .height = 10},
		 "rows: row 1 is from record 3; must be "
		 "below 3, the records of the batch"},
		{SHARD_CROP_CENTER,
		 {.x = 281, .width = 20, .height = 10},
		 "rows: row 1 is 10 x 20 pixels from (0, "
		 "281); must lie within 256 x 300"},
		{SHARD_CROP_RESIZED,
		 {.y = 256, .width = 1, .height = 1},
		 "rows: row 1 is 1 x 1 pixels from (256, "
		 "0); must lie within 256 x 300"},
		{SHARD_CROP_RESIZED,
		 {.y = UINT32_MAX, .width = 2, .height = 2},
		 "rows: row 1 is 2 x 2 pixels from (4294967295, 0); must lie within 256 x 300"},
		{SHARD_CROP_RESIZED,
		 {.width = 0, .height = 1},
		 "rows: row 1 is 1 x 0 pixels from (0, 0); must lie "
		 "within 256 x 300"},
		{SHARD_CROP_RANDOM,
		 {.width = 19, .height = 10},
		 "rows: row 1 is 10 x 19 pixels and the output 10 x 20; only SHARD_CROP_RESIZED resizes"},
		{SHARD_CROP_RANDOM, {.x = 280, .y = 246, .width = 20, .height = 10}, NULL},
		{SHARD_CROP_RESIZED, {.from = 2, .x = 299, .y = 255, .width = 1, .height = 1}, NULL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_transform_options o = {.crop = rows[i].crop, .height = 10, .width = 20};
		struct shard_transform_row two[2] = {{.width = 20, .height = 10}, rows[i].row};

		STORY("row %zu", i);
		CHECK_EQ(transform_plan_make(&plan, &photo, &o, &err), SHARD_OK);
		CHECK_EQ(transform_rows_check(&plan, two, 2, 3, NULL, &err),
			 rows[i].message ? SHARD_E_ARGUMENT : SHARD_OK);
		if (rows[i].message)
			CHECK_STR(err.message, rows[i].message);
	}
}

/* ---- a GPU's shared memory ---- */

TEST(lines_that_do_not_fit_shared_memory)
{
	struct shard_field field = photo;
	struct shard_transform_options o = {
		.crop = SHARD_CROP_RESIZED, .height = 224, .width = 224, .dtype = SHARD_F16};
	struct transform_call call;
	uint32_t shared_bytes, most = 0;

	for (uint32_t side = 224; side <= 4096; side += 32) {
		int rc;

		field.shape[0] = field.shape[1] = side;
		CHECK_EQ(transform_plan_make(&plan, &field, &o, &err), SHARD_OK);
		rc = transform_grid(&plan, TRANSFORM_SHARED_BYTES, &call, &shared_bytes, &err);
		if (!rc)
			most = side;
		CHECK(!rc == (shared_bytes <= TRANSFORM_SHARED_BYTES));
	}
	CHECK(most >= 9 * 224); /* docs/TRANSFORM.md */
	CHECK_STR(err.message,
		  "output of 224 x 224 from images of 4096 x 4096: a line needs 64432 bytes of shared "
		  "memory, and a block of this GPU has 49152; pack smaller images, or transform on the CPU");
	o = (struct shard_transform_options){.dtype = SHARD_F32};
	field.shape[0] = field.shape[1] = 14000;
	CHECK_EQ(transform_plan_make(&plan, &field, &o, &err), SHARD_OK);
	CHECK_EQ(transform_grid(&plan, TRANSFORM_SHARED_BYTES, &call, &shared_bytes, &err), SHARD_OK);
	CHECK_EQ(call.band_lines, 1);
	field.shape[1] = 16000;
	CHECK_EQ(transform_plan_make(&plan, &field, &o, &err), SHARD_OK);
	CHECK_EQ(transform_grid(&plan, TRANSFORM_SHARED_BYTES, &call, &shared_bytes, &err), SHARD_E_ARGUMENT);
}

/* ---- numbers ---- */

TEST(rounding)
{
	static const struct {
		float value;
		uint32_t f16, bf16;
	} rows[] = {{0, 0, 0},
		    {-0.0f, 0x8000, 0x8000},
		    {1, 0x3c00, 0x3f80},
		    {-2, 0xc000, 0xc000},
		    {1 + 0x1p-11f, 0x3c00, 0x3f80}, /* half way: to the even one */
		    {1 + 3 * 0x1p-11f, 0x3c02, 0x3f80},
		    {1 + 0x1p-11f + 0x1p-23f, 0x3c01, 0x3f80},
		    {1 + 0x1p-8f, 0x3c04, 0x3f80},
		    {1 + 3 * 0x1p-8f, 0x3c0c, 0x3f82},
		    {65504, 0x7bff, 0x4780},
		    {65519.996f, 0x7bff, 0x4780},
		    {65520, 0x7c00, 0x4780},
		    {1e30f, 0x7c00, 0x714a},
		    {0x1p-14f, 0x0400, 0x3880},
		    {0x1p-14f - 0x1p-25f, 0x0400, 0x3880},
		    {0x1p-14f - 0x1p-24f, 0x03ff, 0x3880},
		    {0x1p-24f, 1, 0x3380},
		    {0x1p-25f, 0, 0x3300},
		    {0x1p-25f + 0x1p-48f, 1, 0x3300},
		    {3 * 0x1p-25f, 2, 0x33c0},
		    {0x1p-26f, 0, 0x3280},
		    {0x1p-130f, 0, 0x0008},
		    {INFINITY, 0x7c00, 0x7f80},
		    {-INFINITY, 0xfc00, 0xff80},
		    {NAN, 0x7e00, 0x7fc0},
		    {3.4e38f, 0x7c00, 0x7f80}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("%a", (double)rows[i].value);
		CHECK_EQ(transform_round(rows[i].value, SHARD_F16), rows[i].f16);
		CHECK_EQ(transform_round(rows[i].value, SHARD_BF16), rows[i].bf16);
	}
}

/* A number of each type is itself; one that lies between two, the nearer one. */
TEST(rounding_of_all_numbers_of_16_bits)
{
	for (uint32_t bits = 0; bits < 0x7c00; bits++) {
		double value = bits < 0x400 ? ldexp(bits, -24) : ldexp(1024 + (bits & 0x3ff), (int)(bits >> 10) - 25);
		double next = bits + 1 < 0x400 ? ldexp(bits + 1, -24)
					       : ldexp(1024 + ((bits + 1) & 0x3ff), (int)((bits + 1) >> 10) - 25);
		float half = (float)((value + next) / 2);

		STORY("f16 0x%04x", bits);
		CHECK_EQ(transform_round((float)value, SHARD_F16), bits);
		CHECK_EQ(transform_round(-(float)value, SHARD_F16), bits | 0x8000);
		CHECK_EQ(transform_round(half, SHARD_F16), bits + bits % 2);
		CHECK_EQ(transform_round(nextafterf(half, 0), SHARD_F16), bits);
		CHECK_EQ(transform_round(nextafterf(half, 1e6f), SHARD_F16), bits + 1);
	}
}

TEST_MAIN()
