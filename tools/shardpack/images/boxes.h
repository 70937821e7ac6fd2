/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxes.h - boxes of an image to boxes of its record
 *
 * What torchvision's v2 Resize and CenterCrop do to tv_tensors.BoundingBoxes of float32 in XYXY,
 * all in float32 (torchvision/transforms/v2/functional/_geometry.py: resize_bounding_boxes,
 * crop_bounding_boxes; _meta.py: convert_bounding_box_format, clamp_bounding_boxes): each
 * coordinate times the ratio new / old, which is divided in double and then rounded; minus the
 * crop's offset; clamped to [0, crop], or to a whole image (FIT_AREA).  No box is removed, so that
 * other fields stay in step; one that the crop leaves nothing of has no area.
 *
 * Otherwise than there: boxes in XYWH and CXCYWH become XYXY first, and where the resized image is
 * smaller than the crop they move by the padding that the image gets, while CenterCrop moves them
 * by another pixel if the padding is odd.
 */
#ifndef SHARD_IMAGE_BOXES_H
#define SHARD_IMAGE_BOXES_H

#include "tools/shardpack/images/decode_verdict.h"
#include "tools/shardpack/images/transform_image.h"

enum boxes_format {
	BOXES_XYXY,   /* left, top, right, bottom */
	BOXES_XYWH,   /* left, top, width, height */
	BOXES_CXCYWH, /* the middle, width, height */
	BOXES_YOLO,   /* the same as parts of the image, in lines of text; parse/yolo.h */
};

/*
 * `count` boxes of four numbers to XYXY; `out` may be `in`.  Bad input are numbers that are not
 * finite, and negative sizes.  `unit`: they are parts of the width and height, and stay so; more
 * than 0.01 outside of 0 to 1 is bad input, because then they are pixels.
 */
enum decode_status boxes_read(enum boxes_format format, bool unit, const float *in, uint64_t count, float *out,
			      struct decode_verdict *v);

/* XYXY as parts of an image of this size, to its pixels. */
void boxes_scale(uint32_t width, uint32_t height, float *boxes, uint64_t count);

/*
 * Boxes in a file of this size (that of the file, not set upright) with this orientation to those
 * in its upright image.
 */
void boxes_turn(uint32_t orientation, uint32_t width, uint32_t height, float *boxes, uint64_t count);

/* Boxes in an upright image of this size to those in its record. */
void boxes_move(const struct transform_options *opt, uint32_t width, uint32_t height, float *boxes, uint64_t count);

#endif
