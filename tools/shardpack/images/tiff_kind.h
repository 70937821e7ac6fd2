/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiff_kind.h - what the samples of a TIFF mean, and RGB made of them
 *
 * The kinds are those of which all Pillows make the same RGB.
 */
#ifndef SHARD_DECODE_TIFF_KIND_H
#define SHARD_DECODE_TIFF_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/shardpack/images/decode_verdict.h"

enum tiff_colours { TIFF_INDICES, TIFF_RGB, TIFF_RGB_16, TIFF_GRAY_16, TIFF_PREMULTIPLIED, TIFF_CMYK };

struct tiff_kind {
	enum tiff_colours colours;
	uint32_t bits, samples;		  /* of a pixel: bits of each sample; samples of one plane */
	uint16_t planes;		  /* 1, or each sample has its own */
	uint32_t tile_width, tile_height; /* 0: strips */
	bool has_alpha;
	uint8_t table[256][3]; /* what values of one sample mean: shades of gray or a palette */
};

/*
 * `file` is a TIFF that is open, and `colours` what it says these are.  Bad input, with its kind in
 * the verdict, if it is not read.  With `wide` those are read that have 16 bits a sample, gray or
 * RGB.
 */
enum decode_status tiff_kind_find(void *file, uint32_t colours, bool wide, struct tiff_kind *k,
				  struct decode_verdict *v);

/* Of one plane. */
uint64_t tiff_kind_row_bytes(const struct tiff_kind *k, uint32_t width);

/* Pixels of one plane to RGB; with `wide` to RGB of 16 bits. */
void tiff_kind_put(const struct tiff_kind *k, const uint8_t *from, uint32_t count, uint32_t plane, bool wide,
		   uint8_t *to);

#endif
