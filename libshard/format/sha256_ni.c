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
#include "libshard/format/format.h"

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

NI static void blocks_ni(uint32_t h[8], const uint8_t *data, size_t block_count)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	struct stream s, before;

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
