/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256_blocks.h - the compression function of SHA-256 in portable C, and its constants
 */
#ifndef SHARD_CODEC_SHA256_BLOCKS_H
#define SHARD_CODEC_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BLOCK_BYTES 64

/* Folds whole blocks into the eight words of the state. */
typedef void sha256_blocks_fn(uint32_t h[8], const uint8_t *data, size_t block_count);

/* The constants of the rounds. */
extern const _Alignas(64) uint32_t sha256_k[64];

/* For every machine, and the slow twin of sha256_ni.h. */
sha256_blocks_fn sha256_blocks_portable;

#endif
