/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256 (FIPS 180-4), which gives files and datasets their identity
 *
 * Streaming, without allocation.  The SHA instructions of x86 are used where the processor has
 * them; both ways give the same bytes.  Up to 2^61 - 1 bytes may be hashed, which is the limit of
 * the standard.
 */
#ifndef SHARD_CODEC_SHA256_H
#define SHARD_CODEC_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "libshard/format/sha256_blocks.h"

#define SHA256_BYTES 32

struct sha256 {
	uint32_t h[8];
	sha256_blocks_fn *blocks;
	uint64_t data_bytes; /* hashed so far; its low 6 bits say how full `block` is */
	uint8_t block[SHA256_BLOCK_BYTES];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t data_bytes);
/* Ends the stream: init comes before the next update. */
void sha256_final(struct sha256 *s, uint8_t digest[SHA256_BYTES]);

#endif
