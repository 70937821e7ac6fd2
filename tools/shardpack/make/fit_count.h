/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_count.h - how images and boxes fit into their records
 *
 * None of this is an error, and all of it is easily a mistake in the options: an image that was
 * made larger, or stands in a border of zeros; a box of which the crop left nothing, or less than a
 * pixel; an image that lies on its side, or has an alpha channel, or other colours than sRGB; an input
 * without a value for a field that may have none; a field that says the same everywhere.
 */
#ifndef SHARD_CONVERT_FIT_COUNT_H
#define SHARD_CONVERT_FIT_COUNT_H

#include <stdint.h>

#include "shard.h"
#include "tools/shardpack/images/decode_verdict.h"

struct shard_field;
struct transform_options;

/* Of a field that is a list or a mask, by its number in the recipe. */
struct fit_field {
	uint64_t records;     /* 0: the rest says nothing */
	uint64_t without;     /* of these: their inputs have no value, which `optional` allows */
	uint64_t first;	      /* the first of these inputs, in the order of the source */
	uint32_t least, most; /* of the others: of a list its length, of a mask its values */
};

struct fit_count {				   /* start it zeroed */
	uint64_t images, enlarged, padded;	   /* of records */
	uint64_t boxes, empty_boxes, narrow_boxes; /* narrow: an area, but a side below a pixel */
	uint64_t dropped[DROPPED_COUNT];	   /* records with an image whose file has this */
	uint64_t dropped_first[DROPPED_COUNT];	   /* if there is one, the first one's ordinal */
	struct fit_field field[SHARD_FIELDS_MAX];
	uint64_t unknown; /* records of which nobody knows this any more */
};

void fit_count_add(struct fit_count *to, const struct fit_count *more);

/* An image of this size, upright, before the resize. */
void fit_count_image(struct fit_count *to, const struct transform_options *opt, uint32_t width, uint32_t height);

/* What was dropped of the images of a record: bits 1 << enum decode_dropped. */
void fit_count_dropped(struct fit_count *to, uint32_t dropped, uint64_t ordinal);

/* Boxes of a record, XYXY. */
void fit_count_boxes(struct fit_count *to, const float *boxes, uint64_t count);

/* A record whose input has no value for a field; one with so many rows; one with this mask. */
void fit_count_without(struct fit_field *to, uint64_t input_idx);
void fit_count_length(struct fit_field *to, uint32_t length);
void fit_count_mask(struct fit_field *to, const struct shard_field *f, const uint8_t *pixels);

/* How many records have a value. */
uint64_t fit_count_with(const struct fit_field *f);

#endif
