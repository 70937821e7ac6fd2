/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256_ni.c - the SHA-256 compression function with the SHA instructions of x86
 *
 * Compiled by function attribute, so the rest of the library asks nothing of the processor; chosen
 * at run time from CPUID.  Elsewhere this file only says that it has nothing to offer.
 *
 * The instructions keep the eight words in two registers, named from the highest lane down: ABEF
 * and CDGH.  Each sha256rnds2 does two rounds with W + K from the low half of its third operand, so
 * four rounds take two of them.
 *
 * Each instruction waits for the one before it, for as long as two or three others would take.  So
 * two streams, whose rounds take turns, are done in little more time than one.
 */
#include "libshard/codec/sha256_ni.h"

#if !defined(__x86_64__)

sha256_blocks_fn *sha256_blocks_ni(void)
{
	return NULL;
}

sha256_two_blocks_fn *sha256_two_blocks_ni(void)
{
	return NULL;
}

#else

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

#define NI	  __attribute__((target("sha,sse4.1,ssse3")))
#define NI_INLINE __attribute__((target("sha,sse4.1,ssse3"), always_inline)) static inline

struct stream {
	__m128i abef, cdgh;
	__m128i w[4]; /* words of the schedule: those of group g are w[g % 4] */
};

/* Four rounds: t = 4 * group and the next three. */
NI_INLINE void rounds4(struct stream *s, int group)
{
	__m128i wk = _mm_add_epi32(s->w[group % 4], _mm_load_si128((const __m128i *)(sha256_k + 4 * group)));

	/*
	 * Two rounds turn the old ABEF into the new CDGH, so the registers change places each time.
	 */
	s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, wk);
	s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(wk, 0x0e));
}

/* The words of a group, from those of the four groups before it. */
NI_INLINE void schedule4(struct stream *s, int group)
{
	__m128i t_minus_16 = s->w[group % 4], t_minus_12 = s->w[(group + 1) % 4], t_minus_8 = s->w[(group + 2) % 4],
		t_minus_4 = s->w[(group + 3) % 4], t_minus_7 = _mm_alignr_epi8(t_minus_4, t_minus_8, 4);

	s->w[group % 4] =
		_mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(t_minus_16, t_minus_12), t_minus_7), t_minus_4);
}

NI_INLINE void load_state(struct stream *s, const uint32_t h[8])
{
	__m128i dcba = _mm_loadu_si128((const __m128i *)h), hgfe = _mm_loadu_si128((const __m128i *)(h + 4));
	__m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);

	s->abef = _mm_alignr_epi8(cdab, efgh, 8);
	s->cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
}

NI_INLINE void store_state(const struct stream *s, uint32_t h[8])
{
	__m128i feba = _mm_shuffle_epi32(s->abef, 0x1b), dchg = _mm_shuffle_epi32(s->cdgh, 0xb1);

	_mm_storeu_si128((__m128i *)h, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* `count` is 1 or 2, and known when this is compiled, so that all of it stays in registers. */
NI_INLINE void hash_blocks(uint32_t *const h[2], const uint8_t *const data[2], int count, size_t block_count)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	struct stream s[2], before[2];

	for (int i = 0; i < count; i++)
		load_state(&s[i], h[i]);
	for (size_t at = 0; at < block_count * SHA256_BLOCK_BYTES; at += SHA256_BLOCK_BYTES) {
		for (int i = 0; i < count; i++)
			before[i] = s[i];
#pragma GCC unroll 16
		for (int group = 0; group < 16; group++)
#pragma GCC unroll 2
			for (int i = 0; i < count; i++) {
				if (group < 4)
					s[i].w[group] = _mm_shuffle_epi8(
						_mm_loadu_si128((const __m128i *)(data[i] + at) + group), big_endian);
				else
					schedule4(&s[i], group);
				rounds4(&s[i], group);
			}
		for (int i = 0; i < count; i++) {
			s[i].abef = _mm_add_epi32(s[i].abef, before[i].abef);
			s[i].cdgh = _mm_add_epi32(s[i].cdgh, before[i].cdgh);
		}
	}
	for (int i = 0; i < count; i++)
		store_state(&s[i], h[i]);
}

NI static void blocks_ni(uint32_t h[8], const uint8_t *data, size_t block_count)
{
	uint32_t *const states[2] = {h};
	const uint8_t *const from[2] = {data};

	hash_blocks(states, from, 1, block_count);
}

NI static void two_blocks_ni(uint32_t *const h[2], const uint8_t *const data[2], size_t block_count)
{
	hash_blocks(h, data, 2, block_count);
}

static int cpu_has_sha(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
		return 0;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

sha256_blocks_fn *sha256_blocks_ni(void)
{
	/*
	 * CPUID costs microseconds in a virtual machine.  Any thread may find the answer first: it
	 * is the same one.
	 */
	static _Atomic int known; /* 0 not asked yet, 1 no, 2 yes */
	int k = atomic_load_explicit(&known, memory_order_relaxed);

	if (!k) {
		k = 1 + cpu_has_sha();
		atomic_store_explicit(&known, k, memory_order_relaxed);
	}
	return k == 2 ? blocks_ni : NULL;
}

sha256_two_blocks_fn *sha256_two_blocks_ni(void)
{
	return sha256_blocks_ni() ? two_blocks_ni : NULL;
}

#endif
