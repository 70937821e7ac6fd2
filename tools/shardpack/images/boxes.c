/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxes.c - boxes of an image to boxes of its record
 *
 * Float32 throughout, one rounding for each operation.  Built with -ffp-contract=off: a multiply
 * and an add that a compiler makes one would round once.
 */
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <math.h>

#include "shard.h"
#include "shard_inspect.h"

#define NUMBERS 4 /* of a box */

static bool finite4(const float *box)
{
	return isfinite(box[0]) && isfinite(box[1]) && isfinite(box[2]) && isfinite(box[3]);
}

enum decode_status boxes_read(enum boxes_format format, bool unit, const float *in, uint64_t count, float *out,
			      struct decode_verdict *v)
{
	bool sizes = format != BOXES_XYXY, middle = sizes && format != BOXES_XYWH;

	for (uint64_t i = 0; i < count; i++, in += NUMBERS, out += NUMBERS) {
		const char *wrong = NULL;
		float box[NUMBERS];
		bool inside = true; /* of 0 to 1 */

		for (int n = 0; n < NUMBERS; n++)
			inside = inside && in[n] >= -0.01F && in[n] <= 1.01F;
		for (int n = 0; n < 2; n++) {
			box[n] = middle ? in[n] - in[2 + n] / 2 : in[n];
			/* the right side is the left one plus the width, also of boxes that have a middle */
			box[2 + n] = sizes ? box[n] + in[2 + n] : in[2 + n];
		}
		if (!finite4(in) || !finite4(box))
			wrong = "its numbers must be finite";
		else if (unit && !inside)
			wrong = "numbers of scale=unit must be from 0 to 1; are these pixels?";
		else if (sizes ? in[2] < 0 : box[2] < box[0])
			wrong = sizes ? "its width is below 0" : "its right side is left of its left side";
		else if (sizes ? in[3] < 0 : box[3] < box[1])
			wrong = sizes ? "its height is below 0" : "its bottom is above its top";
		if (wrong)
			return decode_bad(v, SHARD_MISS_UNSUPPORTED,
					  "box %" PRIu64 " is [%.9g, %.9g, %.9g, %.9g] (%s): %s", i, (double)in[0],
					  (double)in[1], (double)in[2], (double)in[3],
					  !sizes		 ? "x1, y1, x2, y2"
					  : format == BOXES_XYWH ? "x, y, width, height"
								 : "middle x and y, width, height",
					  wrong);
		for (int n = 0; n < NUMBERS; n++)
			out[n] = box[n];
	}
	return DECODE_OK;
}

void boxes_scale(uint32_t width, uint32_t height, float *boxes, uint64_t count)
{
	for (uint64_t i = 0; i < count * NUMBERS; i++)
		boxes[i] *= (float)(i % 2 ? height : width);
}

/* The range [*low, *high] of a side, seen from its other end. */
static void mirror(float *low, float *high, uint32_t side)
{
	float end = (float)side, was_low = *low;

	*low = end - *high;
	*high = end - was_low;
}

static void swap(float *a, float *b)
{
	float was = *a;

	*a = *b;
	*b = was;
}

void boxes_turn(uint32_t orientation, uint32_t width, uint32_t height, float *boxes, uint64_t count)
{
	struct turn_axes turn = turn_axes(orientation);

	for (; count; count--, boxes += NUMBERS) {
		if (turn.columns_back)
			mirror(&boxes[0], &boxes[2], width);
		if (turn.rows_back)
			mirror(&boxes[1], &boxes[3], height);
		if (turn.lies) {
			swap(&boxes[0], &boxes[1]);
			swap(&boxes[2], &boxes[3]);
		}
	}
}

/* A negative zero becomes a positive one: what is equal has the same bytes. */
static float clamped(float x, uint32_t most)
{
	return !(x > 0) ? 0 : x < (float)most ? x : (float)most;
}

void boxes_move(const struct transform_options *opt, uint32_t width, uint32_t height, float *boxes, uint64_t count)
{
	struct transform_geometry g = transform_geometry(opt, width, height);
	float ratio[2] = {(float)((double)g.width / width), (float)((double)g.height / height)};
	float offset[2] = {(float)g.across.from - (float)g.across.to, (float)g.down.from - (float)g.down.to};
	bool whole = opt->fit == FIT_AREA;
	uint32_t most[2] = {whole ? g.width : opt->crop, whole ? g.height : opt->crop};

	for (uint64_t i = 0; i < count * NUMBERS; i++)
		boxes[i] = clamped(boxes[i] * ratio[i % 2] - offset[i % 2], most[i % 2]);
}
