/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_gif.h - the first frame of a GIF to RGB
 */
#ifndef SHARD_DECODE_DECODE_GIF_H
#define SHARD_DECODE_DECODE_GIF_H

#include "tools/shardpack/decode/decode_image.h"

/* `bytes` begin with the format's magic. */
enum decode_status gif_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			   struct decode_verdict *v);

/* "giflib 5.2.1"; NULL in a build without it. */
const char *decoder_gif_version(void);

#endif
