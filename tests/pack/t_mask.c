/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_mask.c - which pixel of a mask goes where: chosen by hand for small ones
 *
 * The same at random, against Pillow, is twin/masks.sh's to do.
 */
#include "tools/shardpack/images/images.h"

#include "tests/test.h"

/*
 * A mask of single letters, given `at_once` rows at a time, to a record of letters; `-` is padding.
 */
static void run(const struct transform_options *opt, uint32_t orientation, const char *in, uint32_t width,
		uint32_t height, uint32_t at_once, char *out, uint32_t *upright_width, uint32_t *upright_height)
{
	struct mask *m = mask_open(opt, 1, '-');
	struct image_window w;
	const struct image_sink *sink;

	CHECK(m);
	memset(out, '?', (size_t)opt->crop * opt->crop);
	out[(size_t)opt->crop * opt->crop] = '\0';
	sink = mask_sink(m, orientation, (uint8_t *)out);
	CHECK(sink->begin(sink->context, &(struct image_size){.width = width, .height = height, .scale = 1}, &w));
	CHECK(w.width && w.height && w.x + w.width <= width && w.y + w.height <= height);
	for (uint32_t y = 0; y < w.height; y += at_once) {
		uint32_t count = w.height - y < at_once ? w.height - y : at_once;

		sink->rows(sink->context, (const uint8_t *)in + (w.y + y) * width + w.x, width, count);
	}
	mask_source_size(m, upright_width, upright_height);
	mask_close(m);
}

TEST(pixels_are_chosen_by_their_middle)
{
	static const struct {
		const char *in;
		uint32_t width, height, resize, crop;
		enum transform_fit fit;
		const char *out;
	} rows[] = {
		{"a", 1, 1, 2, 2, FIT_SHORT, "aaaa"},
		{"abcd", 2, 2, 0, 2, FIT_SHORT, "abcd"},
		{"abcd", 2, 2, 1, 1, FIT_SHORT, "d"},		     /* 0.5 * 2 is 1 */
		{"abcdefghi", 3, 3, 2, 2, FIT_SHORT, "acgi"},	     /* 0.75, 2.25 */
		{"abcd", 2, 2, 3, 3, FIT_SHORT, "abbcddcdd"},	     /* 0.33, 1, 1.67 */
		{"abcdefghijklmnop", 4, 4, 2, 2, FIT_SHORT, "fhnp"}, /* 1, 3 */
		{"abcd", 4, 1, 2, 2, FIT_STRETCH, "bdbd"},
		{"abcd", 4, 1, 2, 2, FIT_LONG, "bd--"},		    /* 2 x 1 */
		{"abcd", 4, 1, 2, 2, FIT_PAD, "bd--"},		    /* half of one row, to even: below */
		{"abcd", 4, 1, 4, 4, FIT_PAD, "--------abcd----"},  /* half of three is two */
		{"abcd", 1, 4, 4, 4, FIT_LONG, "-a---b---c---d--"}, /* half of three, rounded down */
		/* 1 of 3: the middle; 1 of 2: half to even */
		{"abcdef", 3, 2, 0, 1, FIT_SHORT, "b"},
		{"abcdefghijklmno", 3, 5, 0, 2, FIT_SHORT, "ghjk"}, /* 1 of 3: half to even; 3 of 5: to 2 */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t at_once = 1; at_once <= 3; at_once++) {
			struct transform_options opt = {
				.resize = rows[i].resize, .crop = rows[i].crop, .fit = rows[i].fit};
			uint32_t width, height;
			char out[17];

			STORY("row %zu, %u rows at once", i, at_once);
			run(&opt, 1, rows[i].in, rows[i].width, rows[i].height, at_once, out, &width, &height);
			CHECK_STR(out, rows[i].out);
			CHECK_EQ(width, rows[i].width);
			CHECK_EQ(height, rows[i].height);
		}
}

/* 3 x 2 letters in a record of 3 x 3: set upright first, then padded. */
TEST(orientations_are_undone)
{
	static const struct {
		uint32_t width;
		const char *out;
	} rows[] = {[1] = {3, "abcdef---"}, [2] = {3, "cbafed---"}, [3] = {3, "fedcba---"}, [4] = {3, "defabc---"},
		    [5] = {2, "ad-be-cf-"}, [6] = {2, "da-eb-fc-"}, [7] = {2, "fc-eb-da-"}, [8] = {2, "cf-be-ad-"}};
	struct transform_options opt = {.crop = 3};

	for (uint32_t o = 1; o <= 8; o++)
		for (uint32_t at_once = 1; at_once <= 2; at_once++) {
			uint32_t width, height;
			char out[10];

			STORY("orientation %u, %u rows at once", o, at_once);
			run(&opt, o, "abcdef", 3, 2, at_once, out, &width, &height);
			CHECK_STR(out, rows[o].out);
			CHECK_EQ(width, rows[o].width);
			CHECK_EQ(height, 5 - rows[o].width);
		}
}

TEST_MAIN()
