/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksum.h - the hashes of the format: XXH3-64 and XXH3-128, seed 0, default secret
 *
 * They find accidents.  They do not resist an attacker: the SHA-256 in the manifest does.  No
 * function here allocates, locks or fails.  Pointers may be NULL if the count of bytes is 0, and
 * have any alignment.
 */
#ifndef SHARD_CODEC_CHECKSUM_H
#define SHARD_CODEC_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* As the format stores it: the low half, little-endian, then the high half. */
struct hash128 {
	uint8_t b[16];
};

uint64_t checksum64(const void *data, size_t data_bytes);
struct hash128 checksum128(const void *data, size_t data_bytes);

/*
 * Hashes of bytes that come in pieces.  The state belongs to XXH3, which needs 576 bytes of it in
 * 0.8.
 */
struct checksum_stream {
	_Alignas(64) uint8_t state[1024];
};

void checksum64_init(struct checksum_stream *s);
void checksum64_update(struct checksum_stream *s, const void *data, size_t data_bytes);
uint64_t checksum64_final(const struct checksum_stream *s);

void checksum128_init(struct checksum_stream *s);
void checksum128_update(struct checksum_stream *s, const void *data, size_t data_bytes);
/* The hash of all bytes so far; more may follow. */
struct hash128 checksum128_final(const struct checksum_stream *s);

#endif
