/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - the picture between decode and transform, and the memory it lies in
 *
 * One pixel format only: 8-bit RGB, interleaved, rows without padding.  Everything that
 * arrives in another form becomes this in the decoder.  Masks are otherwise, with one sample for
 * each pixel; and so are images of which 16 bits a sample were asked for.
 */
#ifndef SHARD_SHARDPACK_IMAGES_IMAGE_H
#define SHARD_SHARDPACK_IMAGES_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define IMAGE_CHANNELS	 3
#define IMAGE_WIDE_BYTES 6 /* of a pixel with 16 bits a sample */

/* Where the pixels of a file end up; also how a record of the dataset is laid out. */
enum image_layout {
	IMAGE_HWC, /* row by row, a pixel's three samples side by side */
	IMAGE_CHW, /* three planes, red first */
};

struct image {
	const uint8_t *pixels; /* height * width * 3; borrowed */
	uint32_t width, height;
};

/* Part of an image; lies inside it and is not empty. */
struct image_window {
	uint32_t x, y, width, height;
};

/*
 * An image on its way.  It may have been decoded at 1/scale: then its columns and rows are fewer,
 * width / scale rounded up, and the last of them are partly beyond its edge; or the first ones, if
 * it was turned since.
 */
struct image_size {
	uint32_t width, height; /* as the file has them */
	uint32_t scale;		/* 1, 2, 4 or 8 */
	bool cut_left, cut_top;
};

static inline uint32_t image_columns(const struct image_size *s)
{
	return (s->width + s->scale - 1) / s->scale;
}

static inline uint32_t image_rows(const struct image_size *s)
{
	return (s->height + s->scale - 1) / s->scale;
}

/* How a JPEG is to be decoded. */
struct image_scaling {
	uint32_t scale;
	uint32_t width, height; /* after the resize */
};

/*
 * The taker of an image's pixels while it is decoded.  begin() is called when the size is known and
 * within the limits, and says which of its columns and rows are wanted; false means that memory ran
 * out.  It is called again if the image is decoded a second time.  rows() gets the rows of that part from the top, from its first column on, a few
 * at a time.  They may turn out to be worthless: damage further down in the file is found later.
 *
 * scaling() is asked before, if it is there, by a decoder that can; false if the scale that is
 * asked for would leave less than the wanted size.  The others decode the whole image, at scale 1.
 *
 * fits() is asked first, if it is there: false, and `why` says why not, if no record can be made of
 * an image of this size.
 */
struct image_sink {
	bool (*begin)(void *context, const struct image_size *size, struct image_window *wanted);
	void (*rows)(void *context, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count);
	void *context;
	bool (*scaling)(void *context, uint32_t width, uint32_t height, struct image_scaling *out);
	bool (*fits)(void *context, uint32_t width, uint32_t height, char *why, size_t why_bytes);
};

/* All of an image that lies in memory; a pixel has `pixel_bytes`.  False if begin() says so. */
static inline bool image_give(const struct image_sink *sink, const struct image_size *size, const uint8_t *pixels,
			      uint32_t pixel_bytes)
{
	size_t stride_bytes = pixel_bytes * (size_t)image_columns(size);
	struct image_window part;

	if (!sink->begin(sink->context, size, &part))
		return false;
	sink->rows(sink->context, pixels + part.y * stride_bytes + pixel_bytes * (size_t)part.x, stride_bytes,
		   part.height);
	return true;
}

/*
 * Memory that grows to the largest request and stays: after the first images a thread
 * allocates nothing more.  Start it zeroed.
 */
struct scratch {
	uint8_t *data;
	size_t capacity_bytes;
};

#define SCRATCH_ALIGN_BYTES 64 /* a cache line */
#define SCRATCH_SLACK_BYTES 64 /* readable past the request: wide loads may overrun a row */

/* Make room for `bytes`; the old contents are lost.  False when memory ran out. */
static inline bool scratch_reserve(struct scratch *s, size_t bytes)
{
	size_t want;

	if (s->data && bytes <= s->capacity_bytes)
		return true;
	if (bytes > SIZE_MAX - SCRATCH_SLACK_BYTES - SCRATCH_ALIGN_BYTES)
		return false;
	want = (bytes + SCRATCH_SLACK_BYTES + SCRATCH_ALIGN_BYTES - 1) & ~(size_t)(SCRATCH_ALIGN_BYTES - 1);
	free(s->data);
	s->data = aligned_alloc(SCRATCH_ALIGN_BYTES, want);
	s->capacity_bytes = s->data ? want - SCRATCH_SLACK_BYTES : 0;
	return s->data != NULL;
}

static inline void scratch_free(struct scratch *s)
{
	free(s->data);
	s->data = NULL;
	s->capacity_bytes = 0;
}

#endif
