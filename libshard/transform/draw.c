/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.c - what chance says: which part of an image, and mirrored or not
 *
 * A function of seed, epoch, position in the epoch's order, and view, and of nothing else: not of
 * ranks, threads, batch sizes, or of what was drawn before.  So a job that is resumed, on however
 * many GPUs, goes on with the same augmentation. docs/TRANSFORM.md, part 3, defines it; numbers of
 * it never change.  Doubles, + - * / and square root, each rounded once: built with
 * -ffp-contract=off, and with square roots that set no errno.
 */
#include "libshard/base/bytes.h"
#include "libshard/order/order.h"
#include "libshard/transform/transform.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* Numbers of draws; those of attempts follow each other. */
enum { DRAW_FLIP, DRAW_AREA, DRAW_RATIO, DRAW_TOP, DRAW_LEFT, DRAWS_OF_ATTEMPT = DRAW_LEFT };

static double unit(uint64_t word) /* of [0, 1) */
{
	return (double)(word >> 11) * 0x1p-53;
}

static uint32_t nearest(double x)
{
	return (uint32_t)(x + 0.5);
}

/* Half of what is left over, a half to even, as Python's round() in torchvision's CenterCrop. */
static uint32_t middle(uint32_t in, uint32_t out)
{
	uint32_t left = in - out;

	return left / 2 + (left % 4 == 3);
}

/*
 * Of [ratio_min, ratio_max], its logarithm spread evenly: ratio_min x (max / min)^u, where u has 32
 * bits after the point.
 */
static double draw_ratio(const struct transform_plan *p, uint64_t word)
{
	double ratio = p->ratio_min;

	for (int i = 0; i < TRANSFORM_RATIO_BITS; i++)
		if (word >> (63 - i) & 1)
			ratio *= p->ratio_root[i];
	return ratio;
}

static bool draw_part(const struct transform_plan *p, const struct transform_image *image, uint64_t key, int attempt,
		      struct shard_transform_row *out)
{
	uint64_t first = DRAWS_OF_ATTEMPT * (uint64_t)attempt;
	double area = (double)image->height * image->width, ratio = draw_ratio(p, random_draw(key, first + DRAW_RATIO));

	area *= p->area_min + unit(random_draw(key, first + DRAW_AREA)) * (p->area_max - p->area_min);
	out->width = nearest(__builtin_sqrt(area * ratio));
	out->height = nearest(__builtin_sqrt(area / ratio));
	if (!out->width || out->width > image->width || !out->height || out->height > image->height)
		return false;
	out->y = (uint32_t)random_below(random_draw(key, first + DRAW_TOP), image->height - out->height + UINT64_C(1));
	out->x = (uint32_t)random_below(random_draw(key, first + DRAW_LEFT), image->width - out->width + UINT64_C(1));
	return true;
}

/* No attempt lay within the image: the largest part of its middle whose ratio is allowed. */
static void middle_part(const struct transform_plan *p, const struct transform_image *image,
			struct shard_transform_row *out)
{
	double ratio = (double)image->width / image->height;

	out->width = image->width;
	out->height = image->height;
	if (ratio < p->ratio_min)
		out->height = nearest(image->width / p->ratio_min);
	else if (ratio > p->ratio_max)
		out->width = nearest(image->height * p->ratio_max);
	out->height += !out->height;
	out->width += !out->width;
	out->y = (image->height - out->height) / 2;
	out->x = (image->width - out->width) / 2;
}

void transform_draw(const struct transform_plan *p, const struct transform_image *image, uint64_t epoch,
		    uint64_t position, uint32_t view, struct shard_transform_row *out)
{
	uint64_t key = random_absorb(random_absorb(random_key(p->seed, epoch, RANDOM_FINISH), position), view);
	int attempt = 0;

	out->flip = unit(random_draw(key, DRAW_FLIP)) < p->flip;
	out->width = (uint32_t)min_u64(p->width, image->width);
	out->height = (uint32_t)min_u64(p->height, image->height);
	if (p->crop == SHARD_CROP_CENTER) {
		out->y = middle(image->height, out->height);
		out->x = middle(image->width, out->width);
	} else if (p->crop == SHARD_CROP_RANDOM) {
		out->y = (uint32_t)random_below(random_draw(key, DRAW_TOP), image->height - out->height + UINT64_C(1));
		out->x = (uint32_t)random_below(random_draw(key, DRAW_LEFT), image->width - out->width + UINT64_C(1));
	} else {
		while (attempt < TRANSFORM_ATTEMPTS && !draw_part(p, image, key, attempt, out))
			attempt++;
		if (attempt == TRANSFORM_ATTEMPTS)
			middle_part(p, image, out);
	}
}

uint64_t transform_position(const struct transform_plan *p, const struct shard_batch *batch, uint32_t i)
{
	uint64_t world = p->world, position = p->epoch_records * batch->epoch + batch->position;

	return position + (p->rank + world - position % world) % world + (p->rows ? i / p->rows : i) * world;
}
