/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.c - SHA-256: the stream and its padding
 *
 * Names and numbers follow FIPS 180-4, part 5.
 */
#include "libshard/format/format.h"

#include <string.h>

static void store_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

void sha256_init(struct sha256 *s)
{
	/* FIPS 180-4, 5.3.3: from the square roots of the first 8 primes. */
	static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	sha256_blocks_fn *fast = sha256_blocks_ni();

	memcpy(s->h, first, sizeof(first));
	s->blocks = fast ? fast : sha256_blocks_portable;
	s->data_bytes = 0;
}

void sha256_update(struct sha256 *s, const void *data, size_t data_bytes)
{
	const uint8_t *p = data;
	size_t held = s->data_bytes % SHA256_BLOCK_BYTES, block_count;

	if (!data_bytes)
		return;
	s->data_bytes += data_bytes;
	if (held) {
		size_t room = SHA256_BLOCK_BYTES - held, n = data_bytes < room ? data_bytes : room;

		memcpy(s->block + held, p, n);
		if (n < room)
			return;
		s->blocks(s->h, s->block, 1);
		p += n;
		data_bytes -= n;
	}
	block_count = data_bytes / SHA256_BLOCK_BYTES;
	if (block_count)
		s->blocks(s->h, p, block_count);
	memcpy(s->block, p + block_count * SHA256_BLOCK_BYTES, data_bytes % SHA256_BLOCK_BYTES);
}

void sha256_final(struct sha256 *s, uint8_t digest[SHA256_BYTES])
{
	uint64_t bit_count = s->data_bytes * 8;
	size_t held = s->data_bytes % SHA256_BLOCK_BYTES;

	/* A 1 bit, zeros, and the length in bits in the last 8 bytes of a block. */
	s->block[held++] = 0x80;
	if (held > SHA256_BLOCK_BYTES - 8) {
		memset(s->block + held, 0, SHA256_BLOCK_BYTES - held);
		s->blocks(s->h, s->block, 1);
		held = 0;
	}
	memset(s->block + held, 0, SHA256_BLOCK_BYTES - 8 - held);
	store_be32(s->block + 56, (uint32_t)(bit_count >> 32));
	store_be32(s->block + 60, (uint32_t)bit_count);
	s->blocks(s->h, s->block, 1);
	for (int i = 0; i < 8; i++)
		store_be32(digest + 4 * i, s->h[i]);
}
