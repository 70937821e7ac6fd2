/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.h - Pillow's 8-bit resampler, bit for bit, with a crop window
 *
 * Image.resize((w, h), filter) of every Pillow from 7.0 on, rows first, for images of 8-bit
 * RGB.  (Pillow 12.2 and later resample columns first where height > 100 * width; here
 * rows are always first, as in all versions before.)  Asking for a window of the result
 * gives the same bytes as resizing the whole and cropping, for the price of the window.
 */
#ifndef SHARDPACK_RESIZE_H
#define SHARDPACK_RESIZE_H

#include <stdint.h>

#include "tools/shardpack/image.h"

enum resize_filter {
	RESIZE_BOX,
	RESIZE_BILINEAR,
	RESIZE_BICUBIC,
	RESIZE_LANCZOS,
};

/* Part of the resized image; must lie inside it and not be empty. */
struct resize_window {
	uint32_t x, y, width, height;
};

/* What one thread reuses from image to image: filter weights and the rows between passes. */
struct resizer;

/* NULL when memory ran out. */
struct resizer *resizer_open(void);
void resizer_close(struct resizer *r);

/*
 * Resize `src` to width x height and write `window` of that to `dst`, whose rows start
 * `dst_stride_bytes` apart.  No side may be 0.  False when memory ran out, the one thing that can fail.
 */
bool resizer_run(struct resizer *r, const struct image *src, uint32_t width, uint32_t height, enum resize_filter filter,
		 const struct resize_window *window, uint8_t *dst, size_t dst_stride_bytes);

#endif /* SHARDPACK_RESIZE_H */
