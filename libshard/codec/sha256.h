/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256 (FIPS 180-4), which gives files and datasets their identity
 *
 * Streaming, without allocation.  The SHA instructions of x86 are used where the processor has them; both ways give the
 * same bytes.  Up to 2^61 - 1 bytes may be hashed, which is the limit of the standard.
 */
#ifndef CODEC_SHA256_H
#define CODEC_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES	   32
#define SHA256_HEX_DIGITS  64
#define SHA256_BLOCK_BYTES 64

/* Folds whole blocks into the eight words of the state. */
typedef void sha256_blocks_fn(uint32_t h[8], const uint8_t *data, size_t block_count);

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

/* Lower-case, ends with a NUL. */
void sha256_to_hex(const uint8_t digest[SHA256_BYTES], char hex[SHA256_HEX_DIGITS + 1]);
/* Reads exactly 64 lower-case digits; false, and the digest as it was, at the first byte that is none. */
bool sha256_from_hex(const char *hex, uint8_t digest[SHA256_BYTES]);

/* The two ways, for tests that compare them; sha256_blocks_ni() is NULL where the processor lacks the instructions. */
sha256_blocks_fn sha256_blocks_portable;
sha256_blocks_fn *sha256_blocks_ni(void);

/* The constants of the rounds, which both ways read. */
extern const _Alignas(64) uint32_t sha256_k[64];

#endif
