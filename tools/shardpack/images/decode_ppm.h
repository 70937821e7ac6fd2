/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_ppm.h - PGM and PPM to RGB or the values of a mask
 */
#ifndef SHARD_DECODE_DECODE_PPM_H
#define SHARD_DECODE_DECODE_PPM_H

#include "tools/shardpack/images/decode_image.h"

/* `bytes` begin with the format's magic. */
enum decode_status ppm_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			   struct decode_verdict *v);

#endif
