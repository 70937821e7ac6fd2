/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle.h - the shape of an object as COCO has it: runs of pixels, or an outline
 *
 * Runs go down the columns, from left to right; the first run, which may be empty, lies outside of
 * the object, the next one inside, and so on.  An outline becomes those runs that pycocotools makes
 * of it: maskApi.c, rleFrPoly().  No I/O.
 */
#ifndef SHARD_FORMAT_RLE_H
#define SHARD_FORMAT_RLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RLE_WHY_BYTES 160
#define RLE_SIDE_MAX  UINT32_C(65535) /* so that a picture has less than 2^32 pixels */

struct rle { /* start it zeroed; rle_clear() keeps its memory */
	uint32_t *run;
	uint64_t count, capacity;
	uint64_t steps; /* of the outlines that were drawn */
};

void rle_clear(struct rle *r);
void rle_free(struct rle *r);

/* A run more.  False if memory ran out. */
bool rle_add(struct rle *r, uint32_t pixels);

/*
 * The compressed text of COCO, behind what is there.  False, and `why` of RLE_WHY_BYTES, if it is
 * none.
 */
bool rle_add_text(struct rle *r, const char *text, size_t bytes, char *why);

/* Do the runs from number `first` on cover a picture of that size?  The same of false. */
bool rle_check(const struct rle *r, uint64_t first, uint32_t width, uint32_t height, char *why);

/*
 * The outline of `points` points, x and y each, in a picture of that size, as runs behind those
 * that are there.  At least three points, none farther away than 2^20.  False, and `why`, if memory
 * ran out, or all outlines since rle_clear() are too long.
 */
bool rle_add_outline(struct rle *r, const double *xy, size_t points, uint32_t width, uint32_t height, char *why);

/* How many pixels the runs [first, end) have inside of the object. */
uint64_t rle_area(const struct rle *r, uint64_t first, uint64_t end);

/* A picture to draw on, whose rows lie one behind the other. */
struct rle_picture {
	void *data;
	uint32_t width, height;
	uint32_t sample_bytes; /* of a pixel: 1, 2 or 4 */
};

/* Set these pixels to a value. */
void rle_paint(const struct rle *r, uint64_t first, uint64_t end, uint32_t value, const struct rle_picture *out);

#endif
