/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_webp.h - WebP to RGB or the values of a mask
 */
#ifndef SHARD_DECODE_DECODE_WEBP_H
#define SHARD_DECODE_DECODE_WEBP_H

#include "tools/shardpack/images/decode_image.h"

/* `bytes` begin with the format's magic. */
enum decode_status webp_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v);

#endif
