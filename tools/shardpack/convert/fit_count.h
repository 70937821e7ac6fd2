/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_count.h - how images and boxes fit into their records
 *
 * None of this is an error, and all of it is easily a mistake in the options: an image that was
 * made larger, or stands in a border of zeros; a box of which the crop left nothing, or less than a
 * pixel; an image that lies on its side, or has an alpha channel, or other colours than sRGB.
 */
#ifndef SHARD_CONVERT_FIT_COUNT_H
#define SHARD_CONVERT_FIT_COUNT_H

#include <stdint.h>

#include "tools/shardpack/decode/decode_verdict.h"

struct transform_options;

struct fit_count {				   /* start it zeroed */
	uint64_t images, enlarged, padded;	   /* of records */
	uint64_t boxes, empty_boxes, narrow_boxes; /* narrow: an area, but a side below a pixel */
	uint64_t dropped[DROPPED_COUNT];	   /* records with an image whose file has this */
	uint64_t dropped_first[DROPPED_COUNT];	   /* if there is one, the first one's ordinal */
	uint64_t unknown;			   /* records of which nobody knows this any more */
};

void fit_count_add(struct fit_count *to, const struct fit_count *more);

/* An image of this size, upright, before the resize. */
void fit_count_image(struct fit_count *to, const struct transform_options *opt, uint32_t width, uint32_t height);

/* What was dropped of the images of a record: bits 1 << enum decode_dropped. */
void fit_count_dropped(struct fit_count *to, uint32_t dropped, uint64_t ordinal);

/* Boxes of a record, XYXY. */
void fit_count_boxes(struct fit_count *to, const float *boxes, uint64_t count);

#endif
