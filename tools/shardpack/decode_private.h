/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_private.h - what decode.c and the format decoders share
 */
#ifndef SHARDPACK_DECODE_PRIVATE_H
#define SHARDPACK_DECODE_PRIVATE_H

#include "shard.h"
#include "tools/shardpack/decode.h"

struct decoder {
	struct decode_options limit;	/* no zeros; const after open */
	struct scratch pixels;		/* the image, or some rows of it, always the last one */
	struct scratch line;		/* one row in the file's own channels */
	const struct image_sink *sink;	/* NULL: the image is wanted as a whole, in `pixels` */
	bool sink_begun;		/* its rows are given by the format's decoder; else decode.c does it at the end */
};

/* decode_jpeg.c, decode_png.c and so on: bytes that begin with their magic */
enum decode_status jpeg_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v);
enum decode_status png_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			   struct decode_verdict *v);
enum decode_status webp_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v);
enum decode_status bmp_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			   struct decode_verdict *v);
enum decode_status ppm_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			   struct decode_verdict *v);

/* decode.c */

/* Fill *v; returns DECODE_BAD_INPUT. */
enum decode_status decode_bad(struct decode_verdict *v, enum shard_miss_reason reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
enum decode_status decode_no_memory(struct decode_verdict *v);

/* Hold the size against the limits. */
enum decode_status decode_check_size(struct decoder *d, uint64_t width, uint64_t height, struct decode_verdict *v);

/* The same, and make room for the pixels of *out. */
enum decode_status decode_begin(struct decoder *d, uint64_t width, uint64_t height, struct image *out,
				struct decode_verdict *v);

/* Before what is not allocated by decode_begin(). */
void decode_claim(struct decoder *d, uint64_t bytes);

/* Where row y starts; decode_begin was called. */
uint8_t *decode_row(struct decoder *d, const struct image *out, uint32_t y);

/*
 * Rows of one sample per pixel are read into the last third of their place and spread
 * from there, forward: pixel i is written to [3i, 3i + 3) and read from 2 * width + i,
 * which a write reaches only in the last pixel, after its read.
 */
static inline uint8_t *decode_narrow_row(uint8_t *row, uint32_t width)
{
	return row + 2 * (size_t)width;
}

void decode_spread_gray(uint8_t *row, uint32_t width);

#endif /* SHARDPACK_DECODE_PRIVATE_H */
