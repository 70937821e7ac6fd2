/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - the picture between decode and transform, and the memory it lies in
 *
 * One pixel format only: 8-bit RGB, interleaved, rows without padding.  Everything that
 * arrives in another form becomes this in the decoder.  Masks alone are otherwise: they
 * have one sample for each pixel.
 */
#ifndef SHARDPACK_IMAGE_H
#define SHARDPACK_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define IMAGE_CHANNELS 3

/* Where the pixels of a file end up; also how a record of the dataset is laid out. */
enum image_layout {
	IMAGE_HWC, /* row by row, a pixel's three samples side by side */
	IMAGE_CHW, /* three planes, red first */
};

struct image {
	const uint8_t *pixels; /* height * width * 3; borrowed, see who made it */
	uint32_t width, height;
};

/* Part of an image; lies inside it and is not empty. */
struct image_window {
	uint32_t x, y, width, height;
};

/*
 * Who takes the pixels of an image while it is decoded.  begin() is called once, when the size is known and within the
 * limits, and says which part is wanted; false means that memory ran out.  rows() gets the rows of that part from the
 * top, from its first column on, a few at a time.  They may turn out to be worthless: damage further down in the file
 * is found later.
 */
struct image_sink {
	bool (*begin)(void *context, uint32_t width, uint32_t height, struct image_window *wanted);
	void (*rows)(void *context, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count);
	void *context;
};

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

/* Make room for `bytes`; what was there is lost.  False when memory ran out. */
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

#endif /* SHARDPACK_IMAGE_H */
