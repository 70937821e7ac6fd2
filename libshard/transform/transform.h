/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.h - from the bytes of an image to the numbers that a network takes: docs/TRANSFORM.md
 *
 * Crop or random-resized-crop, flip, normalise, convert, transpose.  Pure: no I/O, no allocation,
 * no lock; nothing of libm but the square root, which IEEE 754 rounds exactly.  transform_twin() is
 * the definition in C; the kernels of libshard/gpu/transform.cu give the same bits.
 */
#ifndef SHARD_TRANSFORM_TRANSFORM_H
#define SHARD_TRANSFORM_TRANSFORM_H

#include <stdbool.h>

#include "libshard/transform/call.h"
#include "shard.h"
#include "shard_pack.h"
#include "shard_transform.h"

#define TRANSFORM_ATTEMPTS   10 /* to draw a part that lies within the image; then its middle is taken */
#define TRANSFORM_RATIO_BITS 32
#define TRANSFORM_NAME_BYTES 32

#define TRANSFORM_LONGER 4u /* the longest side of whole images: this many sides of the largest square */

/* An image, and how large it is. */
struct transform_image {
	const uint8_t *at;
	uint32_t height, width;
};

struct transform_plan {
	bool is_whole;		      /* images differ in size, and are HWC */
	uint32_t in_height, in_width; /* of all images; of whole ones, the most that is transformed */
	uint32_t channels;
	bool in_is_planar;
	uint32_t height, width;
	bool is_planar;
	uint32_t dtype, element_bytes;
	uint32_t crop;	      /* enum shard_transform_crop */
	uint32_t pixels;      /* enum shard_pixels */
	uint64_t row_bytes;   /* of the output */
	uint64_t image_bytes; /* of the field; of whole images, the most */
	double flip, area_min, area_max, ratio_min, ratio_max;
	double ratio_root[TRANSFORM_RATIO_BITS]; /* (ratio_max / ratio_min) ^ (1/2, 1/4, 1/8, ...) */
	uint64_t seed;
	uint32_t rank, world;
	uint32_t rows;		/* that stand at one position: those of a window; 0 is 1 */
	uint64_t epoch_records; /* of a mixture, whose positions go on from epoch to epoch; else 0 */
	uint32_t bits[TRANSFORM_CHANNELS_MAX][256]; /* of dtype, in the low bytes */
};

/* ---- transform_plan.c: what is asked for, checked ---- */

/*
 * ARGUMENT, naming the field or the option, the limit, and what to do.  seed, rank and world are
 * the caller's to set.
 */
int transform_plan_make(struct transform_plan *p, const struct shard_field *field,
			const struct shard_transform_options *opt, struct shard_error *err);
/*
 * Image i of a field whose rows have these sizes, NULL if all are alike.  A masked row has the size
 * 0 x 0: it counts as a black image of one pixel or, if nothing is resized, of the output's size.
 */
struct transform_image transform_image_of(const struct transform_plan *p, const uint8_t *at,
					  const struct shard_size *size, uint32_t i);
/* Is the image neither too long nor too small?  Of images that are alike that is known already. */
int transform_image_check(const struct transform_plan *p, const struct transform_image *image, uint64_t record,
			  struct shard_error *err);
/* Explicit rows, of a batch of `records`. */
int transform_rows_check(const struct transform_plan *p, const struct shard_transform_row *row, uint64_t row_count,
			 uint32_t records, const struct shard_size *size, struct shard_error *err);

/* Bits of the number of that type that is nearest to `value`, a half to even. */
uint32_t transform_round(float value, uint32_t dtype);

/* ---- draw.c: what chance says ---- */

/*
 * What chance says of the row of a batch that stands at `position` of its epoch.  Where an image is
 * smaller than a crop, the part ends with the image.
 */
void transform_draw(const struct transform_plan *p, const struct transform_image *image, uint64_t epoch,
		    uint64_t position, uint32_t view, struct shard_transform_row *out);
/*
 * The position of row `i` of this rank's batch: format/ORDER.md, part 7.  Of a mixture it is
 * counted from the start, and draws are those of epoch 0.
 */
uint64_t transform_position(const struct transform_plan *p, const struct shard_batch *batch, uint32_t i);

/* What chance says of row `i` of a batch, of which epoch and position are set. */
static inline void transform_draw_row(const struct transform_plan *p, const struct transform_image *image,
				      const struct shard_batch *batch, uint32_t i, uint32_t view,
				      struct shard_transform_row *out)
{
	out->from = i;
	transform_draw(p, image, p->epoch_records ? 0 : batch->epoch, transform_position(p, batch, i), view, out);
}

/* ---- taps.c: weights of a resize ---- */

/* The most taps that a pixel has when up to `in` samples become `out`. */
uint32_t transform_taps_most(uint32_t in, uint32_t out);
/*
 * Does the pass down the columns come first when this part is resized?  And how wide is the widest
 * part of an image for which that holds, 0 if there is none?
 */
bool transform_is_down_first(const struct transform_plan *p, const struct shard_transform_row *row);
uint32_t transform_down_first_width(const struct transform_plan *p);
/* Those of pixel `at`: weight[0 .. count), and zeros up to `most`. */
struct transform_taps transform_taps_fill(uint32_t in, uint32_t out, uint32_t at, int32_t *weight, uint32_t most);

/* ---- transform_twin.c: the definition ---- */

uint64_t transform_twin_bytes(const struct transform_plan *p); /* of scratch */
/* One row: an image to p->row_bytes at `out`, of any alignment.  `scratch` is 16-aligned. */
void transform_twin(const struct transform_plan *p, const struct shard_transform_row *row,
		    const struct transform_image *image, void *out, void *scratch);

/* ---- transform_fast.c: on this CPU ---- */

/* Has the CPU what it takes, and are images [height, width, 3]? */
bool transform_fast_applies(const struct transform_plan *p);

uint64_t transform_fast_bytes(const struct transform_plan *p); /* of scratch */

/*
 * As transform_twin(); `scratch` is 32-aligned.  Returns false, and does nothing, for a part that
 * is resized down before across.
 */
bool transform_fast(const struct transform_plan *p, const struct shard_transform_row *row,
		    const struct transform_image *image, void *out, void *scratch);

#define TRANSFORM_CPU_ALIGN 32u /* of the scratch */

uint64_t transform_cpu_bytes(const struct transform_plan *p); /* of scratch */

/* One row, as transform_twin(): by the fast path if it applies. */
void transform_cpu(const struct transform_plan *p, const struct shard_transform_row *row,
		   const struct transform_image *image, void *out, void *scratch);

/* ---- transform_beside.c: masks and boxes ---- */

#define TRANSFORM_BOX_BYTES 16u /* x, y, x, y as float32, in pixels of the image */

/*
 * A mask of the image's height and width, in elements of element_bytes: the bytes of Pillow's
 * mask.crop(part).resize(size, NEAREST), mirrored like the image.
 */
void transform_mask(const struct transform_plan *p, const struct shard_transform_row *row, uint32_t element_bytes,
		    const uint8_t *mask, uint8_t *out);

/*
 * Boxes in pixels of the output, as those of torchvision's v2.functional.resized_crop() and
 * horizontal_flip(): cut off at the edges of the part.  A box outside of it has no area.
 */
void transform_boxes(const struct transform_plan *p, const struct shard_transform_row *row, uint64_t count,
		     const uint8_t *boxes, uint8_t *out);

/* ---- grid.c: how a call is spread over blocks of a GPU ---- */

/*
 * Fill all of the call but addresses and rows, and tell the bytes of shared memory that a block
 * needs.  Fails with ARGUMENT if one line of the output needs more than `shared_most`.
 */
int transform_grid(const struct transform_plan *p, uint32_t shared_most, struct transform_call *call,
		   uint32_t *shared_bytes, struct shard_error *err);
/* Put row i of an image that is so wide into the call; `from` is in the units of the call. */
void transform_put_row(const struct transform_plan *p, struct transform_call *c, uint32_t i,
		       const struct shard_transform_row *row, uint32_t image_width, uint32_t from);
/*
 * Give each block as many bands as leave about `blocks` of them for `rows` rows.  Before, each has
 * one.
 */
void transform_spread(struct transform_call *call, uint32_t rows, uint32_t blocks);
uint32_t transform_blocks(const struct transform_call *call); /* in x */
/* How it stores, and the kernel for it; `aligned`: the output is 16-aligned. */
void transform_shape(const struct transform_plan *p, bool aligned, struct transform_call *call,
		     char name[TRANSFORM_NAME_BYTES]);

#endif
