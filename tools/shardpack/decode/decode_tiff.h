/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_tiff.h - the first page of a TIFF to RGB
 */
#ifndef SHARD_DECODE_DECODE_TIFF_H
#define SHARD_DECODE_DECODE_TIFF_H

#include "tools/shardpack/decode/decode_image.h"

/* `bytes` begin with the format's magic. */
enum decode_status tiff_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v);

/* "libtiff 4.5.0"; NULL in a build without it. */
const char *decoder_tiff_version(void);

#endif
