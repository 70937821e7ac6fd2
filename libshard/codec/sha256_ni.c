/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256_ni.c - the SHA-256 compression function with the SHA instructions of x86
 *
 * Compiled by function attribute, so the rest of the library asks nothing of the processor; chosen at run time from
 * CPUID.  Elsewhere this file only says that it has nothing to offer.
 *
 * The instructions keep the eight words in two registers, named from the highest lane down: ABEF and CDGH.  Each
 * sha256rnds2 does two rounds with W + K from the low half of its third operand, so four rounds take two of them.
 *
 * Each of them waits for the one before, and a processor can begin another meanwhile: two streams side by side take
 * little longer than one.
 */
#include "libshard/codec/sha256.h"

#if !defined(__x86_64__)

sha256_blocks_fn *sha256_blocks_ni(void)
{
	return NULL;
}

sha256_pair_fn *sha256_pair_ni(void)
{
	return NULL;
}

#else

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

#define NI	  __attribute__((target("sha,sse4.1,ssse3")))
#define NI_INLINE __attribute__((target("sha,sse4.1,ssse3"), always_inline)) static inline

/* Four rounds with the schedule words w, which are t = 4 * group and the next three. */
NI_INLINE void rounds4(__m128i *abef, __m128i *cdgh, __m128i w, int group)
{
	__m128i wk = _mm_add_epi32(w, _mm_load_si128((const __m128i *)(sha256_k + 4 * group)));

	/* Two rounds turn the old ABEF into the new CDGH, so the registers change places each time. */
	*cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, wk);
	*abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(wk, 0x0e));
}

/* The schedule: from words t-16 (w0), t-12 (w1), t-8 (w2) and t-4 (w3) the four words from t on. */
NI_INLINE __m128i schedule4(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
	__m128i t_minus_7 = _mm_alignr_epi8(w3, w2, 4);

	return _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), t_minus_7), w3);
}

/* The eight words as the instructions want them. */
struct words {
	__m128i abef, cdgh;
};

NI_INLINE struct words words_load(const uint32_t h[8])
{
	__m128i dcba = _mm_loadu_si128((const __m128i *)h), hgfe = _mm_loadu_si128((const __m128i *)(h + 4));
	__m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);

	return (struct words){_mm_alignr_epi8(cdab, efgh, 8), _mm_blend_epi16(efgh, cdab, 0xf0)};
}

NI_INLINE void words_store(uint32_t h[8], struct words s)
{
	__m128i feba = _mm_shuffle_epi32(s.abef, 0x1b), dchg = _mm_shuffle_epi32(s.cdgh, 0xb1);

	_mm_storeu_si128((__m128i *)h, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

NI_INLINE __m128i message4(const uint8_t *block, int i)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);

	return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)block + i), big_endian);
}

NI static void blocks_ni(uint32_t h[8], const uint8_t *data, size_t block_count)
{
	struct words s = words_load(h);

	for (; block_count; block_count--, data += SHA256_BLOCK_BYTES) {
		struct words before = s;
		__m128i w[4];

		for (int i = 0; i < 4; i++) {
			w[i] = message4(data, i);
			rounds4(&s.abef, &s.cdgh, w[i], i);
		}
		/* 4 groups a turn, so that w[] stays in registers without copies. */
		for (int group = 4; group < 16; group += 4) {
			w[0] = schedule4(w[0], w[1], w[2], w[3]);
			rounds4(&s.abef, &s.cdgh, w[0], group);
			w[1] = schedule4(w[1], w[2], w[3], w[0]);
			rounds4(&s.abef, &s.cdgh, w[1], group + 1);
			w[2] = schedule4(w[2], w[3], w[0], w[1]);
			rounds4(&s.abef, &s.cdgh, w[2], group + 2);
			w[3] = schedule4(w[3], w[0], w[1], w[2]);
			rounds4(&s.abef, &s.cdgh, w[3], group + 3);
		}
		s.abef = _mm_add_epi32(s.abef, before.abef);
		s.cdgh = _mm_add_epi32(s.cdgh, before.cdgh);
	}
	words_store(h, s);
}

/* rounds4() of two streams, instruction by instruction. */
NI_INLINE void rounds4_pair(struct words *s, __m128i v, struct words *t, __m128i w, int group)
{
	__m128i k = _mm_load_si128((const __m128i *)(sha256_k + 4 * group));
	__m128i vk = _mm_add_epi32(v, k), wk = _mm_add_epi32(w, k);

	s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, vk);
	t->cdgh = _mm_sha256rnds2_epu32(t->cdgh, t->abef, wk);
	s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(vk, 0x0e));
	t->abef = _mm_sha256rnds2_epu32(t->abef, t->cdgh, _mm_shuffle_epi32(wk, 0x0e));
}

/* The next four words of both schedules, in place of the oldest, and their rounds. */
NI_INLINE void step_pair(struct words *s, __m128i v[4], struct words *t, __m128i w[4], int group, int i)
{
	v[i] = schedule4(v[i], v[(i + 1) % 4], v[(i + 2) % 4], v[(i + 3) % 4]);
	w[i] = schedule4(w[i], w[(i + 1) % 4], w[(i + 2) % 4], w[(i + 3) % 4]);
	rounds4_pair(s, v[i], t, w[i], group + i);
}

NI static void pair_ni(uint32_t g[8], const uint8_t *a, uint32_t h[8], const uint8_t *b, size_t block_count)
{
	struct words s = words_load(g), t = words_load(h);

	for (; block_count; block_count--, a += SHA256_BLOCK_BYTES, b += SHA256_BLOCK_BYTES) {
		struct words s_before = s, t_before = t;
		__m128i v[4], w[4];

		for (int i = 0; i < 4; i++) {
			v[i] = message4(a, i);
			w[i] = message4(b, i);
			rounds4_pair(&s, v[i], &t, w[i], i);
		}
		for (int group = 4; group < 16; group += 4) {
			step_pair(&s, v, &t, w, group, 0);
			step_pair(&s, v, &t, w, group, 1);
			step_pair(&s, v, &t, w, group, 2);
			step_pair(&s, v, &t, w, group, 3);
		}
		s.abef = _mm_add_epi32(s.abef, s_before.abef);
		s.cdgh = _mm_add_epi32(s.cdgh, s_before.cdgh);
		t.abef = _mm_add_epi32(t.abef, t_before.abef);
		t.cdgh = _mm_add_epi32(t.cdgh, t_before.cdgh);
	}
	words_store(g, s);
	words_store(h, t);
}

static int cpu_has_sha(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
		return 0;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

static bool can_sha(void)
{
	/* CPUID costs microseconds in a virtual machine.  Any thread may find the answer first: it is the same one. */
	static _Atomic int known; /* 0 not asked yet, 1 no, 2 yes */
	int k = atomic_load_explicit(&known, memory_order_relaxed);

	if (!k) {
		k = 1 + cpu_has_sha();
		atomic_store_explicit(&known, k, memory_order_relaxed);
	}
	return k == 2;
}

sha256_blocks_fn *sha256_blocks_ni(void)
{
	return can_sha() ? blocks_ni : NULL;
}

sha256_pair_fn *sha256_pair_ni(void)
{
	return can_sha() ? pair_ni : NULL;
}

#endif
