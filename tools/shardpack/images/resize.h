/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.h - Pillow's 8-bit resampler, bit for bit, with a crop window
 *
 * Image.resize((w, h), filter, box) for images of 8-bit RGB, in the order of passes that a version
 * of Pillow has: enum resize_pixels.  Asking for a window of the result gives the same bytes as
 * resizing the whole and cropping, for the price of the window.
 *
 * Source rows may come a few at a time, from the top: the rows between the passes are kept only as
 * long as they are needed, so an image need never be in memory as a whole.
 */
#ifndef SHARD_IMAGE_RESIZE_H
#define SHARD_IMAGE_RESIZE_H

#include <stdint.h>

#include "tools/shardpack/images/image.h"
#include "tools/shardpack/images/resize_filter.h"

/* Where pixels go. */
struct resize_target {
	uint8_t *pixels;
	size_t row_bytes;   /* from one row to the next */
	size_t plane_bytes; /* from one channel's plane to the next; 0: a pixel's channels side by side */
};

struct resize_job {
	uint32_t in_width, in_height;
	uint32_t width, height; /* of the whole result; no side may be 0 */
	enum resize_filter filter;
	struct image_window window; /* the part of it that is wanted */
	struct resize_target target;
	struct resize_box across, down;
	enum resize_pixels pixels;
};

/* One thread's memory from image to image: filter weights and the rows between passes. */
struct resizer;

/* The fastest way that the processor offers.  NULL when memory ran out. */
struct resizer *resizer_open(void);
/* The same bytes, without a processor's special instructions. */
struct resizer *resizer_open_portable(void);
void resizer_close(struct resizer *r);

/*
 * Begin an image, and say which part of the source it is made of.  False when memory ran out, the
 * one thing that can fail.
 */
bool resizer_begin(struct resizer *r, const struct resize_job *job, struct image_window *needed);

/*
 * The next rows of the part that resizer_begin() said, from its first column on.  Once all were
 * given, the target is complete.  Reads not a byte outside of that part.
 */
void resizer_rows(struct resizer *r, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count);

/* Do columns come first?  Where both sides change. */
bool resize_is_down_first(const struct resize_job *job);

/* All at once, rows first. */
bool resizer_run(struct resizer *r, const struct image *src, uint32_t width, uint32_t height, enum resize_filter filter,
		 const struct image_window *window, const struct resize_target *target);

#endif
