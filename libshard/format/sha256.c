/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.c - SHA-256, as FIPS 180-4 has it: names and numbers are those of its parts 4 to 6
 *
 * Nothing is allocated.  The SHA instructions of x86 are used where the processor has them; both ways
 * give the same bytes.  Up to 2^61 - 1 bytes may be hashed, which is the limit of the standard.
 */
#include "libshard/format/format.h"

#include <string.h>

#include "libshard/base/cpu.h"

/* ---- the compression function in portable C ---- */

/* 4.2.2: the first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const _Alignas(64) uint32_t sha256_k[64] = {
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

/* ---- the same with the SHA instructions of x86 ---- */

/*
 * Compiled by function attribute, so the rest of the library asks nothing of the processor; chosen
 * at run time.
 *
 * The instructions keep the eight words in two registers, named from the highest lane down: ABEF
 * and CDGH.  Each sha256rnds2 does two rounds with W + K from the low half of its third operand, so
 * four rounds take two of them.
 */

#if !defined(__x86_64__)

sha256_blocks_fn *sha256_blocks_ni(void)
{
	return NULL;
}

#else

#include <immintrin.h>

#define NI	  __attribute__((target("sha,sse4.1,ssse3")))
#define NI_INLINE __attribute__((target("sha,sse4.1,ssse3"), always_inline)) static inline

struct ni_state {
	__m128i abef, cdgh;
	__m128i w[4]; /* words of the schedule: those of group g are w[g % 4] */
};

/* Four rounds: t = 4 * group and the next three. */
NI_INLINE void rounds4(struct ni_state *s, int group)
{
	__m128i wk = _mm_add_epi32(s->w[group % 4], _mm_load_si128((const __m128i *)(sha256_k + 4 * group)));

	/*
	 * Two rounds turn the old ABEF into the new CDGH, so the registers change places each time.
	 */
	s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, wk);
	s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(wk, 0x0e));
}

/* The words of a group, from those of the four groups before it. */
NI_INLINE void schedule4(struct ni_state *s, int group)
{
	__m128i t_minus_16 = s->w[group % 4], t_minus_12 = s->w[(group + 1) % 4], t_minus_8 = s->w[(group + 2) % 4],
		t_minus_4 = s->w[(group + 3) % 4], t_minus_7 = _mm_alignr_epi8(t_minus_4, t_minus_8, 4);

	s->w[group % 4] =
		_mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(t_minus_16, t_minus_12), t_minus_7), t_minus_4);
}

NI_INLINE void load_state(struct ni_state *s, const uint32_t h[8])
{
	__m128i dcba = _mm_loadu_si128((const __m128i *)h), hgfe = _mm_loadu_si128((const __m128i *)(h + 4));
	__m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);

	s->abef = _mm_alignr_epi8(cdab, efgh, 8);
	s->cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
}

NI_INLINE void store_state(const struct ni_state *s, uint32_t h[8])
{
	__m128i feba = _mm_shuffle_epi32(s->abef, 0x1b), dchg = _mm_shuffle_epi32(s->cdgh, 0xb1);

	_mm_storeu_si128((__m128i *)h, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

NI static void blocks_ni(uint32_t h[8], const uint8_t *data, size_t block_count)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	struct ni_state s, before;

	load_state(&s, h);
	for (; block_count; block_count--, data += SHA256_BLOCK_BYTES) {
		before = s;
#pragma GCC unroll 16
		for (int group = 0; group < 16; group++) {
			if (group < 4)
				s.w[group] =
					_mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + group), big_endian);
			else
				schedule4(&s, group);
			rounds4(&s, group);
		}
		s.abef = _mm_add_epi32(s.abef, before.abef);
		s.cdgh = _mm_add_epi32(s.cdgh, before.cdgh);
	}
	store_state(&s, h);
}

sha256_blocks_fn *sha256_blocks_ni(void)
{
	return cpu_has_sha() ? blocks_ni : NULL;
}

#endif

/* ---- the stream and its padding ---- */

static void store_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

void sha256_init(struct sha256 *s)
{
	/* 5.3.3: from the square roots of the first 8 primes. */
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
