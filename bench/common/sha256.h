/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256 of whole blocks by the SHA instructions, for the bounds of packing
 */
#ifndef SHARD_COMMON_SHA256_H
#define SHARD_COMMON_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_STREAMS_MAX 2

/* Does the processor have them? */
bool bench_sha256_can(void);

void bench_sha256_init(uint32_t h[8]);

/*
 * `count` streams, each of as many bytes, a multiple of 64.  Two at once take little longer than
 * one, because the instructions of one stream wait for each other.
 */
void bench_sha256(uint32_t (*h)[8], const uint8_t *const *data, unsigned count, size_t bytes);

/* The end of a stream of that many bytes in all, a multiple of 64. */
void bench_sha256_final(uint32_t h[8], uint64_t bytes, uint8_t digest[32]);

#endif
