/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_shape.h - the objects of one image, from the `segmentation` of COCO, as one mask
 *
 *   [[x1,y1,x2,y2,x3,y3,...],...]            outlines, whose union the object is
 *   {"counts":[...] or "text","size":[height,width]}     runs; rle.h
 *
 * Where objects overlap, the smaller one is on top: the one with fewer pixels, the sum over its
 * outlines.  Of two of one size it is the later one.  No I/O.
 */
#ifndef SHARD_FORMAT_COCO_SHAPE_H
#define SHARD_FORMAT_COCO_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/shardpack/parse/rle.h"

#define COCO_SHAPE_WHY_BYTES 240

struct coco_shape {
	uint64_t first, end; /* pieces */
	uint64_t area, number;
	uint32_t value;
};

struct coco_shapes { /* start it zeroed; coco_shapes_clear() keeps its memory */
	struct rle rle;
	uint64_t *piece_end; /* of each outline: where its runs end */
	uint64_t piece_count, piece_capacity;
	struct coco_shape *shape;
	uint64_t count, capacity;
	uint64_t painted; /* pixels of all objects */
	double *xy;	  /* of the outline at hand */
	uint64_t xy_capacity;
	char why[COCO_SHAPE_WHY_BYTES];
};

void coco_shapes_clear(struct coco_shapes *s);
void coco_shapes_free(struct coco_shapes *s);

/*
 * Add an object of a picture of that size, which paint() gives that value.  False, and s->why, if
 * the text is no such thing, or does not fit the picture; or if to paint all would take too long.
 */
bool coco_shapes_add(struct coco_shapes *s, const char *text, size_t bytes, uint32_t width, uint32_t height,
		     uint32_t value);

/* All of them, over what is there, in a picture of that size. */
void coco_shapes_paint(struct coco_shapes *s, const struct rle_picture *out);

#endif
