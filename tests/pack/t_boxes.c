/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_boxes.c - boxes by hand: formats, verdicts, turns, and where they go
 *
 * The same at random, against NumPy and Pillow, is twin/boxes.sh's to do.
 */
#include "tools/shardpack/images/images.h"

#include <math.h>

#include "shard.h"
#include "shard_inspect.h"
#include "tests/test.h"

TEST(all_formats_are_read)
{
	static const float middles[] = {2.5f, 4, 3, 4, 5, 5, 0, 0, -0.5f, 0.125f, 2, 0.25f};
	static const float in[] = {1, 2, 3, 4, 5, 5, 0, 0, -1.5f, 0, 2, 0.25f};
	static const float corners[] = {1, 2, 4, 6, 5, 5, 5, 5, -1.5f, 0, 0.5f, 0.25f};
	struct decode_verdict v;
	float out[12];

	CHECK_EQ(boxes_read(BOXES_XYWH, false, in, 3, out, &v), DECODE_OK);
	CHECK_MEM(out, corners, sizeof(out));
	CHECK_EQ(boxes_read(BOXES_XYXY, false, out, 3, out, &v), DECODE_OK);
	CHECK_MEM(out, corners, sizeof(out));
	CHECK_EQ(boxes_read(BOXES_XYXY, false, NULL, 0, NULL, &v), DECODE_OK);
	CHECK_EQ(boxes_read(BOXES_CXCYWH, false, middles, 3, out, &v), DECODE_OK);
	CHECK_MEM(out, corners, sizeof(out));
}

TEST(parts_of_the_image_become_pixels)
{
	static const float in[] = {0.5f, 0.25f, 0.5f, 0.5f}, corners[] = {0.25f, 0, 0.75f, 0.5f};
	static const float pixels[] = {50, 0, 150, 50};
	struct decode_verdict v;
	float out[4];

	CHECK_EQ(boxes_read(BOXES_CXCYWH, true, in, 1, out, &v), DECODE_OK);
	CHECK_MEM(out, corners, sizeof(out));
	boxes_scale(200, 100, out, 1);
	CHECK_MEM(out, pixels, sizeof(out));
	CHECK_EQ(boxes_read(BOXES_CXCYWH, true, (const float[]){0.5f, 0.5f, 1.01f, -0.0f}, 1, out, &v), DECODE_OK);
	CHECK_EQ(boxes_read(BOXES_CXCYWH, true, pixels, 1, out, &v), DECODE_BAD_INPUT);
	CHECK_STR(v.message, "box 0 is [50, 0, 150, 50] (middle x and y, width, height): numbers of scale=unit must be "
			     "from 0 to 1; are these pixels?");
}

TEST(what_is_no_box_says_why)
{
	static const struct {
		enum boxes_format format;
		float box[4];
		const char *sentence;
	} rows[] = {
		{BOXES_XYXY,
		 {1, 2, 0.5f, 4},
		 "box 1 is [1, 2, 0.5, 4] (x1, y1, x2, y2): its right side is left of its left side"},
		{BOXES_XYXY, {1, 2, 3, 1}, "box 1 is [1, 2, 3, 1] (x1, y1, x2, y2): its bottom is above its top"},
		{BOXES_XYWH, {1, 2, -3, 4}, "box 1 is [1, 2, -3, 4] (x, y, width, height): its width is below 0"},
		{BOXES_XYWH,
		 {1, 2, 3, -1e-9f},
		 "box 1 is [1, 2, 3, -9.99999972e-10] (x, y, width, height): its height is below 0"},
		{BOXES_XYXY,
		 {1, 2, INFINITY, 4},
		 "box 1 is [1, 2, inf, 4] (x1, y1, x2, y2): its numbers must be finite"},
		{BOXES_XYXY, {NAN, 2, 3, 4}, "box 1 is [nan, 2, 3, 4] (x1, y1, x2, y2): its numbers must be finite"},
		{BOXES_XYWH,
		 {3e38f, 2, 3e38f, 4}, /* the sum is not */
		 "box 1 is [3.00000001e+38, 2, 3.00000001e+38, 4] (x, y, width, height): its numbers must be finite"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		float boxes[8] = {0};
		struct decode_verdict v;

		STORY("row %zu", i);
		memcpy(boxes + 4, rows[i].box, sizeof(rows[i].box));
		CHECK_EQ(boxes_read(rows[i].format, false, boxes, 2, boxes, &v), DECODE_BAD_INPUT);
		CHECK_STR(v.message, rows[i].sentence);
		CHECK_EQ(v.reason, SHARD_MISS_UNSUPPORTED);
	}
}

/* [1, 2] to [3, 5] in an image of 10 x 20. */
TEST(orientations_are_undone)
{
	static const float rows[][4] = {
		[1] = {1, 2, 3, 5}, [2] = {7, 2, 9, 5},	  [3] = {7, 15, 9, 18}, [4] = {1, 15, 3, 18},
		[5] = {2, 1, 5, 3}, [6] = {15, 1, 18, 3}, [7] = {15, 7, 18, 9}, [8] = {2, 7, 5, 9}};

	for (uint32_t o = 1; o <= 8; o++) {
		float boxes[8] = {1, 2, 3, 5, 1, 2, 3, 5};

		STORY("orientation %u", o);
		boxes_turn(o, 10, 20, boxes, 2);
		CHECK_MEM(boxes, rows[o], sizeof(rows[o]));
		CHECK_MEM(boxes + 4, rows[o], sizeof(rows[o]));
	}
}

TEST(boxes_go_where_the_image_goes)
{
	static const struct {
		uint32_t width, height, resize, crop;
		enum transform_fit fit;
		float in[4], out[4];
	} rows[] = {
		{100, 100, 0, 100, FIT_SHORT, {1, 2, 3, 4}, {1, 2, 3, 4}},
		{100, 100, 50, 50, FIT_SHORT, {1, 2, 3, 4}, {0.5f, 1, 1.5f, 2}},
		{200, 100, 50, 50, FIT_SHORT, {60, 2, 70, 4}, {5, 1, 10, 2}},	  /* 100 x 50, 25 to the left */
		{105, 100, 0, 100, FIT_SHORT, {10, 0, 20, 100}, {8, 0, 18, 100}}, /* half of 5, to even */
		{200, 100, 50, 50, FIT_LONG, {4, 4, 8, 8}, {1, 13, 2, 14}},	  /* 50 x 25, 12 above */
		{200, 100, 50, 50, FIT_STRETCH, {4, 4, 8, 8}, {1, 2, 2, 4}},
		/* 100 x 27, half of 73, to even, above */
		{200, 54, 100, 100, FIT_PAD, {4, 4, 8, 8}, {2, 38, 4, 40}},
		{97, 100, 0, 100, FIT_SHORT, {0, 0, 97, 100}, {1, 0, 98, 100}}, /* padded by 1 and 2 */
		{100, 100, 0, 50, FIT_SHORT, {-1000, -1000, 1000, 1000}, {0, 0, 50, 50}},
		{100, 100, 0, 50, FIT_SHORT, {0, 0, 10, 10}, {0, 0, 0, 0}}, /* outside: it stays, empty */
		{100, 100, 0, 50, FIT_SHORT, {90, 25, 99, 25}, {50, 0, 50, 0}},
		{3, 3, 1, 1, FIT_SHORT, {-0.0f, 1, 3, 3e38f}, {0, 1 / 3.0f, 1, 1}}, /* the ratio is of float32 */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct transform_options opt = {.resize = rows[i].resize, .crop = rows[i].crop, .fit = rows[i].fit};
		float boxes[8];

		STORY("row %zu", i);
		memcpy(boxes, rows[i].in, sizeof(rows[i].in));
		memcpy(boxes + 4, rows[i].in, sizeof(rows[i].in));
		boxes_move(&opt, rows[i].width, rows[i].height, boxes, 2);
		for (int n = 0; n < 8; n++)
			if (memcmp(&boxes[n], &rows[i].out[n % 4], sizeof(float)) != 0)
				test_fail(__FILE__, __LINE__, "number %d is %.9g, not %.9g", n, (double)boxes[n],
					  (double)rows[i].out[n % 4]);
	}
}

TEST_MAIN()
