/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_bmp.h - BMP to RGB or the values of a mask
 */
#ifndef SHARD_DECODE_DECODE_BMP_H
#define SHARD_DECODE_DECODE_BMP_H

#include "tools/shardpack/images/decode_image.h"

/* `bytes` begin with the format's magic. */
enum decode_status bmp_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			   struct decode_verdict *v);

#endif
