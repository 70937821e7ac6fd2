/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256_blocks.c - the compression function of SHA-256 in portable C, and the constants of its
 * rounds
 *
 * Names and numbers follow FIPS 180-4, parts 4 and 6.
 */
#include "libshard/format/format.h"

/*
 * FIPS 180-4, 4.2.2: the first 32 bits of the fractions of the cube roots of the first 64 primes.
 */
const _Alignas(64) uint32_t sha256_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/*
 * One round (6.2.2).  It writes d and h only: the callers rename the eight words instead of moving
 * them.
 */
static inline void round1(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f, uint32_t g,
			  uint32_t *h, uint32_t k_plus_w)
{
	uint32_t sum1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25), ch = (e & f) ^ (~e & g);
	uint32_t sum0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22), maj = (a & b) ^ (a & c) ^ (b & c);
	uint32_t t1 = *h + sum1 + ch + k_plus_w;

	*d += t1;
	*h = t1 + sum0 + maj;
}

static void compress(uint32_t state[8], const uint8_t *block)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
	uint32_t w[64];

	for (int t = 0; t < 16; t++)
		w[t] = load_be32(block + 4 * t);
	for (int t = 16; t < 64; t++) {
		uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
		uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;

		w[t] = s1 + w[t - 7] + s0 + w[t - 16];
	}
	for (int t = 0; t < 64; t += 8) {
		const uint32_t *k = sha256_k + t, *v = w + t;

		round1(a, b, c, &d, e, f, g, &h, k[0] + v[0]);
		round1(h, a, b, &c, d, e, f, &g, k[1] + v[1]);
		round1(g, h, a, &b, c, d, e, &f, k[2] + v[2]);
		round1(f, g, h, &a, b, c, d, &e, k[3] + v[3]);
		round1(e, f, g, &h, a, b, c, &d, k[4] + v[4]);
		round1(d, e, f, &g, h, a, b, &c, k[5] + v[5]);
		round1(c, d, e, &f, g, h, a, &b, k[6] + v[6]);
		round1(b, c, d, &e, f, g, h, &a, k[7] + v[7]);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

void sha256_blocks_portable(uint32_t h[8], const uint8_t *data, size_t block_count)
{
	for (; block_count; block_count--, data += SHA256_BLOCK_BYTES)
		compress(h, data);
}
