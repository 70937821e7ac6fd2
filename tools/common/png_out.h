/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_out.h - write pixels as a PNG file
 */
#ifndef SHARD_COMMON_PNG_OUT_H
#define SHARD_COMMON_PNG_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Sample (x, y, c) is the byte pixels[y * row_bytes + x * pixel_bytes + c * channel_bytes], or the
 * two bytes there with the low one first, so that HWC and CHW are written as they lie.  A packed
 * RGB image has row_bytes 3 * width, pixel_bytes 3 and channel_bytes 1.
 */
struct png_image {
	const uint8_t *pixels;
	uint32_t width, height; /* 1 to 2^31 - 1 */
	uint32_t channel_count; /* 1: gray, 3: RGB */
	size_t row_bytes, pixel_bytes, channel_bytes;
	bool wide; /* 16 bits a sample */
};

/*
 * Write the whole file and flush.  The bytes depend on the pixels and the versions of
 * libpng and zlib only: no time, no text.  0, or -1 with a sentence in `error`.
 */
int png_write(FILE *out, const struct png_image *image, char *error, size_t error_bytes);

#endif
