/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256_ni.h - the compression function of SHA-256 with the SHA instructions of x86
 */
#ifndef SHARD_CODEC_SHA256_NI_H
#define SHARD_CODEC_SHA256_NI_H

#include "libshard/format/sha256_blocks.h"

/* NULL where the processor lacks the instructions. */
sha256_blocks_fn *sha256_blocks_ni(void);

#endif
