/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transform.c - sizes, crop offsets, padding and layouts of a record
 *
 * The sizes and offsets in the tables follow from the rules of torchvision (Resize, CenterCrop).
 * That the pixels in them are right is t_resize's and twin/pillow.sh's to say.
 */
#include "tools/shardpack/images/images.h"

#include "tests/pack/prng.h"
#include "tests/test.h"

/* Each pixel says where it was: red its column, green its row, blue 1. */
static struct image where_am_i(uint32_t width, uint32_t height)
{
	uint8_t *p = malloc(3 * (size_t)width * height);

	CHECK(p);
	for (uint32_t i = 0; i < width * height; i++) {
		p[3 * i] = (uint8_t)(i % width);
		p[3 * i + 1] = (uint8_t)(i / width);
		p[3 * i + 2] = 1;
	}
	return (struct image){p, width, height};
}

static size_t record_bytes(const struct transform_options *opt)
{
	return (size_t)opt->crop * opt->crop * IMAGE_CHANNELS * normal_sample_bytes(opt->samples);
}

static uint8_t *transformed(const struct transform_options *opt, const struct image *src)
{
	struct image_size size = {.width = src->width, .height = src->height, .scale = 1};
	struct transform *t = transform_open(opt);
	uint8_t *record = malloc(record_bytes(opt));

	CHECK(t && record);
	memset(record, 0xee, record_bytes(opt));
	CHECK(image_give(transform_sink(t, record), &size, src->pixels, IMAGE_CHANNELS));
	transform_finish(t);
	transform_close(t);
	return record;
}

/*
 * An even difference halves; an odd one goes to the even neighbour: 1 to 0, 3 to 2, 5 to 2, 7 to 4.
 */
TEST(crop_rounds_half_to_even)
{
	static const struct {
		uint32_t size, left;
	} rows[] = {{10, 0}, {11, 0}, {12, 1}, {13, 2}, {14, 2}, {15, 2}, {16, 3}, {17, 4}, {18, 4}, {19, 4}, {21, 6}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct transform_options opt = {.crop = 10};
		struct image wide = where_am_i(rows[i].size, 10), high = where_am_i(10, rows[i].size);
		uint8_t *a = transformed(&opt, &wide), *b = transformed(&opt, &high);

		STORY("size %u", rows[i].size);
		CHECK_EQ(a[0], rows[i].left);
		CHECK_EQ(a[1], 0);
		CHECK_EQ(a[3 * 99], rows[i].left + 9);
		CHECK_EQ(b[0], 0);
		CHECK_EQ(b[1], rows[i].left);
		CHECK_EQ(b[3 * 99 + 1], rows[i].left + 9);
		free(a);
		free(b);
		free((void *)wide.pixels);
		free((void *)high.pixels);
	}
}

/* Too small: zeros around, the odd one right and below. */
TEST(crop_pads_with_zeros)
{
	static const struct {
		uint32_t width, height, left, top;
	} rows[] = {{3, 3, 1, 1}, {4, 2, 1, 2}, {5, 6, 0, 0}, {1, 9, 2, 0}, {9, 1, 0, 2}, {6, 6, 0, 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct transform_options opt = {.crop = 6};
		uint32_t w = rows[i].width, h = rows[i].height;
		struct image src = where_am_i(w, h);
		uint8_t *record = transformed(&opt, &src);

		for (uint32_t y = 0; y < 6; y++)
			for (uint32_t x = 0; x < 6; x++) {
				bool in = x >= rows[i].left && x < rows[i].left + w && y >= rows[i].top &&
					  y < rows[i].top + h;

				STORY("%ux%u at %u,%u", w, h, x, y);
				CHECK_EQ(record[3 * (6 * y + x) + 2], in);
			}
		free(record);
		free((void *)src.pixels);
	}
}

/* Resize truncates the long side; the crop's place in the result tells its size. */
TEST(resize_keeps_the_shape_and_truncates)
{
	static const struct {
		uint32_t width, height, resize, new_width, new_height;
	} rows[] = {
		{500, 375, 256, 341, 256}, {375, 500, 256, 256, 341}, {333, 500, 256, 256, 384},
		{500, 334, 256, 383, 256}, {256, 256, 256, 256, 256}, {256, 300, 256, 256, 300},
		{7, 3, 10, 23, 10},	   {3, 7, 10, 10, 23},	      {1, 200, 1, 1, 200},
		{100, 99, 99, 100, 99},	   {100, 99, 98, 98, 98},     {199, 100, 1, 1, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t w = rows[i].new_width, h = rows[i].new_height, side = w > h ? w : h;
		struct transform_options opt = {.resize = rows[i].resize, .crop = side, .filter = RESIZE_BOX};
		struct image src = where_am_i(rows[i].width, rows[i].height);
		uint8_t *record = transformed(&opt, &src);
		uint32_t columns = 0, lines = 0;

		/* With a crop as large as the long side, the blue ones are the image. */
		for (uint32_t n = 0; n < side; n++) {
			columns += record[3 * (side * ((side - 1) / 2) + n) + 2];
			lines += record[3 * (side * n + (side - 1) / 2) + 2];
		}
		STORY("%ux%u, short side %u", rows[i].width, rows[i].height, rows[i].resize);
		CHECK_EQ(columns, w);
		CHECK_EQ(lines, h);
		free(record);
		free((void *)src.pixels);
	}
}

/* Of one record: where the image begins in it, and its size there. */
static void placed(const uint8_t *record, uint32_t side, uint32_t box[4])
{
	box[0] = box[1] = side;
	box[2] = box[3] = 0;
	for (uint32_t y = 0; y < side; y++)
		for (uint32_t x = 0; x < side; x++)
			if (record[3 * (side * y + x) + 2]) { /* blue */
				box[0] = x < box[0] ? x : box[0];
				box[1] = y < box[1] ? y : box[1];
				box[2] = x + 1 - box[0] > box[2] ? x + 1 - box[0] : box[2];
				box[3] = y + 1 - box[1] > box[3] ? y + 1 - box[1] : box[3];
			}
}

/* long truncates the short side and halves what is left over; pad rounds both, a half to even. */
TEST(fits_inside_the_square)
{
	static const struct {
		enum transform_fit fit;
		uint32_t width, height, resize, box[4];
	} rows[] = {
		{FIT_LONG, 100, 37, 40, {0, 13, 40, 14}},  {FIT_PAD, 100, 37, 40, {0, 12, 40, 15}},
		{FIT_LONG, 37, 100, 40, {13, 0, 14, 40}},  {FIT_PAD, 37, 100, 40, {12, 0, 15, 40}},
		{FIT_LONG, 4, 3, 6, {0, 1, 6, 4}},	   {FIT_PAD, 4, 3, 6, {0, 1, 6, 4}},
		{FIT_LONG, 4, 3, 10, {0, 1, 10, 7}},	   {FIT_PAD, 4, 3, 10, {0, 1, 10, 8}},
		{FIT_LONG, 10, 3, 10, {0, 3, 10, 3}},	   {FIT_PAD, 10, 3, 10, {0, 4, 10, 3}},
		{FIT_LONG, 7, 7, 10, {0, 0, 10, 10}},	   {FIT_PAD, 7, 7, 10, {0, 0, 10, 10}},
		{FIT_LONG, 100, 1, 10, {0, 4, 10, 1}},	   {FIT_PAD, 100, 1, 10, {0, 4, 10, 1}},
		{FIT_STRETCH, 100, 1, 10, {0, 0, 10, 10}}, {FIT_STRETCH, 3, 9, 10, {0, 0, 10, 10}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t n = rows[i].resize, box[4];
		struct transform_options opt = {.resize = n, .crop = n, .fit = rows[i].fit, .filter = RESIZE_BOX};
		struct image src = where_am_i(rows[i].width, rows[i].height);
		uint8_t *record = transformed(&opt, &src);

		placed(record, n, box);
		for (int k = 0; k < 4; k++) {
			STORY("fit %d, %ux%u to %u, number %d", (int)rows[i].fit, rows[i].width, rows[i].height, n, k);
			CHECK_EQ(box[k], rows[i].box[k]);
		}
		free(record);
		free((void *)src.pixels);
	}
}

TEST(chw_is_hwc_in_planes)
{
	struct transform_options opt = {.resize = 50, .crop = 61, .filter = RESIZE_BICUBIC};
	struct image src = where_am_i(90, 70);
	uint8_t *hwc = transformed(&opt, &src), *chw;

	opt.layout = IMAGE_CHW;
	chw = transformed(&opt, &src);
	for (size_t i = 0; i < 61 * 61; i++)
		for (size_t c = 0; c < 3; c++) {
			STORY("pixel %zu channel %zu", i, c);
			CHECK_EQ(chw[c * 61 * 61 + i], hwc[3 * i + c]);
		}
	free(hwc);
	free(chw);
	free((void *)src.pixels);
}

TEST_MAIN()
