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
 */
#include "libshard/codec/sha256_ni.h"

#if !defined(__x86_64__)

sha256_blocks_fn *sha256_blocks_ni(void)
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

	/*
	 * Two rounds turn the old ABEF into the new CDGH, so the registers change places each time.
	 */
	*cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, wk);
	*abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(wk, 0x0e));
}

/* The schedule: from words t-16 (w0), t-12 (w1), t-8 (w2) and t-4 (w3) the four words from t on. */
NI_INLINE __m128i schedule4(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
	__m128i t_minus_7 = _mm_alignr_epi8(w3, w2, 4);

	return _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), t_minus_7), w3);
}

NI static void blocks_ni(uint32_t h[8], const uint8_t *data, size_t block_count)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i dcba = _mm_loadu_si128((const __m128i *)h), hgfe = _mm_loadu_si128((const __m128i *)(h + 4));
	__m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
	__m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
	__m128i feba, dchg;

	for (; block_count; block_count--, data += SHA256_BLOCK_BYTES) {
		__m128i abef_before = abef, cdgh_before = cdgh, w[4];

		for (int i = 0; i < 4; i++) {
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + i), big_endian);
			rounds4(&abef, &cdgh, w[i], i);
		}
		/* 4 groups a turn, so that w[] stays in registers without copies. */
		for (int group = 4; group < 16; group += 4) {
			w[0] = schedule4(w[0], w[1], w[2], w[3]);
			rounds4(&abef, &cdgh, w[0], group);
			w[1] = schedule4(w[1], w[2], w[3], w[0]);
			rounds4(&abef, &cdgh, w[1], group + 1);
			w[2] = schedule4(w[2], w[3], w[0], w[1]);
			rounds4(&abef, &cdgh, w[2], group + 2);
			w[3] = schedule4(w[3], w[0], w[1], w[2]);
			rounds4(&abef, &cdgh, w[3], group + 3);
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	feba = _mm_shuffle_epi32(abef, 0x1b);
	dchg = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)h, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
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

#endif
