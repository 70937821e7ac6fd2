/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_image.h - the common part of all formats' decoders: limits, room for the pixels, rows
 */
#ifndef SHARD_DECODE_DECODE_IMAGE_H
#define SHARD_DECODE_DECODE_IMAGE_H

#include "tools/shardpack/images/decode_options.h"
#include "tools/shardpack/images/decode_verdict.h"
#include "tools/shardpack/images/image.h"
#include "tools/shardpack/images/mask_codes.h"

struct decoder {
	struct decode_options limit; /* no zeros; const after open */
	struct scratch pixels;	     /* the image, or some rows of it, always the last one */
	struct scratch line;	     /* one row in the file's own channels */
	uint32_t channels;	     /* IMAGE_CHANNELS, or 1 for a mask */
	bool wide;		     /* the image is to have 16 bits a sample */
	/*
	 * In `pixels`: channels, IMAGE_WIDE_BYTES, or 2 for a mask of 16 bits until its values fit;
	 * MASK_PIXEL_BYTES for a mask of codes, until decode_codes() has made its samples.
	 */
	uint32_t pixel_bytes;
	const struct mask_codes *codes; /* of a mask; NULL: its values are its samples */
	const struct image_sink *sink;	/* takes the rows */
	/* its rows are given by the format's decoder; else decode.c does it at the end */
	bool sink_begun;
	uint64_t claimed_bytes; /* the most that was claimed for the image at hand */
};

/* Hold the size against the limits. */
enum decode_status decode_check_size(struct decoder *d, uint64_t width, uint64_t height, struct decode_verdict *v);

/* The same, and make room for the pixels of *out. */
enum decode_status decode_begin(struct decoder *d, uint64_t width, uint64_t height, struct image *out,
				struct decode_verdict *v);

/* Before memory that decode_begin() does not allocate. */
void decode_claim(struct decoder *d, uint64_t bytes);

/* Where row y starts; decode_begin was called. */
uint8_t *decode_row(struct decoder *d, const struct image *out, uint32_t y);

/*
 * Rows of one sample per pixel are read into the last third of their place and spread from there,
 * forward: pixel i is written to [3i, 3i + 3) and read from 2 * width + i, which a write reaches
 * only in the last pixel, after its read.  (Those of a mask stay as they are.)  A wide row is one
 * of twice that width.
 */
static inline uint8_t *decode_narrow_row(uint8_t *row, uint32_t width)
{
	return row + 2 * (size_t)width;
}

/* What the sink gets for a pixel. */
static inline uint32_t decode_given_bytes(const struct decoder *d)
{
	return d->codes ? d->codes->sample_bytes : d->wide ? IMAGE_WIDE_BYTES : d->channels;
}

/* Of a mask of codes: a row as the file has it becomes row y; decode_begin() was called. */
enum decode_status decode_codes(struct decoder *d, const struct image *out, const struct mask_pixels *p,
				const uint8_t *row, uint32_t y, struct decode_verdict *v);

/*
 * Samples of 16 bits, the high byte first, to bytes.  The first one above 255 gets its column into
 * *bad_x and its value is returned; else 0.  `to` may be `row`, or lie before it.
 */
uint32_t decode_16_to_8(const uint8_t *row, uint32_t width, uint8_t *to, uint32_t *bad_x);

void decode_spread_gray(uint8_t *row, uint32_t width);
void decode_spread_wide(uint8_t *row, uint32_t width);

#endif
