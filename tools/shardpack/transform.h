/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.h - a decoded image to the bytes of a record
 *
 * torchvision's Resize(resize_short) followed by CenterCrop(crop), on PIL images, bit for
 * bit.  Resize makes the short side resize_short and the long one
 * floor(resize_short * long / short).  The crop is crop x crop, its offsets rounded half to
 * even; where the image is smaller it is padded with zeros, the odd one right and below.
 * A crop size is always given, since it is what makes all records the same shape.
 */
#ifndef SHARDPACK_TRANSFORM_H
#define SHARDPACK_TRANSFORM_H

#include "tools/shardpack/resize.h"

#define TRANSFORM_SIDE_MAX 65500 /* the most that libjpeg reads; its square fits 32 bits */

struct transform_options {
	uint32_t resize_short; /* 0: no resize, crop only */
	uint32_t crop;	       /* required; side of the square, 1 to TRANSFORM_SIDE_MAX */
	enum resize_filter filter;
	enum image_layout layout;
};

/* What one thread reuses from image to image. */
struct transform;

/* NULL when memory ran out. */
struct transform *transform_open(const struct transform_options *opt);
void transform_close(struct transform *t);

/* crop * crop * 3: what transform_run writes. */
size_t transform_record_bytes(const struct transform_options *opt);

/* Takes an image as it is decoded, and makes it one record at `dst`.  One image at a time. */
const struct image_sink *transform_sink(struct transform *t, uint8_t *dst);

/* The same of an image in memory.  False when memory ran out, the one thing that can fail. */
bool transform_run(struct transform *t, const struct image *src, uint8_t *dst);

#endif /* SHARDPACK_TRANSFORM_H */
