/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_beside.c - masks and boxes that lie beside an image, and follow it
 *
 * Float32 for boxes, one rounding for each operation; doubles for masks, added up as Pillow does.
 * Built with -ffp-contract=off.
 */
#include "libshard/transform/transform.h"

#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* ---- masks ---- */

/* Which of `in` pixels each of `out` pixels is nearest to, one after the other. */
struct nearest {
	double at, scale;
	uint32_t in;
};

static struct nearest nearest_begin(uint32_t in, uint32_t out)
{
	double scale = (double)in / out;

	return (struct nearest){scale * 0.5, scale, in};
}

static uint32_t nearest_next(struct nearest *n)
{
	uint32_t here = n->at < n->in ? (uint32_t)n->at : n->in - 1;

	n->at += n->scale;
	return here;
}

void transform_mask(const struct transform_plan *p, const struct shard_transform_row *row, uint32_t element_bytes,
		    const uint8_t *mask, uint8_t *out)
{
	struct nearest down = nearest_begin(row->height, p->height);

	for (uint32_t y = 0; y < p->height; y++, out += (size_t)p->width * element_bytes) {
		size_t line = ((size_t)row->y + nearest_next(&down)) * p->in_width + row->x;
		struct nearest across = nearest_begin(row->width, p->width);

		for (uint32_t x = 0; x < p->width; x++) {
			size_t at = line + nearest_next(&across), to = row->flip ? p->width - 1 - x : x;

			if (element_bytes == 1)
				out[to] = mask[at];
			else
				memcpy(out + to * element_bytes, mask + at * element_bytes, element_bytes);
		}
	}
}

/* ---- boxes ---- */

/* Returns 0 for -0 and for what is not a number, so that equal boxes have equal bytes. */
static float clamped(float x, uint32_t most)
{
	return !(x > 0) ? 0 : x < (float)most ? x : (float)most;
}

void transform_boxes(const struct transform_plan *p, const struct shard_transform_row *row, uint64_t count,
		     const uint8_t *boxes, uint8_t *out)
{
	const float ratio[2] = {(float)((double)p->width / row->width), (float)((double)p->height / row->height)};
	const uint32_t from[2] = {row->x, row->y}, size[2] = {row->width, row->height};

	for (uint64_t i = 0; i < count; i++, boxes += TRANSFORM_BOX_BYTES, out += TRANSFORM_BOX_BYTES) {
		float box[4], left;

		memcpy(box, boxes, sizeof(box));
		for (int k = 0; k < 4; k++)
			box[k] = clamped(box[k] - (float)from[k % 2], size[k % 2]) * ratio[k % 2];
		if (row->flip) {
			left = (float)p->width - box[2];
			box[2] = (float)p->width - box[0];
			box[0] = left;
		}
		memcpy(out, box, sizeof(box));
	}
}
