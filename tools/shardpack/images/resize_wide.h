/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_wide.h - Pillow's resampler for mode I;16, bit for bit, with a crop window
 *
 * The same job as resize.h has, of RGB with 16 bits a sample, in the order of bytes of this
 * machine.  Pillow has gray of that kind only: each channel is what Pillow makes of it.
 *
 * A sum of cubic or Lanczos weights may be above 65535.  Pillow 13 gives 65535.  Before, it clipped
 * the upper byte and not the lower one, so 65600 became 0xff40: enum resize_pixels decides.
 */
#ifndef SHARD_IMAGE_RESIZE_WIDE_H
#define SHARD_IMAGE_RESIZE_WIDE_H

#include "tools/shardpack/images/resize.h"

/* One thread's memory from image to image. */
struct wide_resizer;

/* NULL when memory ran out. */
struct wide_resizer *wide_resizer_open(void);
void wide_resizer_close(struct wide_resizer *r);

/* As resizer_begin() and resizer_rows(); the boxes of the job are not looked at. */
bool wide_resizer_begin(struct wide_resizer *r, const struct resize_job *job, struct image_window *needed);
void wide_resizer_rows(struct wide_resizer *r, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count);

#endif
