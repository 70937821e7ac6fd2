/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feistel_avx2.c - the rounds of feistel.c for four numbers at once
 *
 * Numbers are below 2^31, keys and tweaks of 64 bits.  There is no 64-bit multiplication in AVX2:
 * products are put together from those of halves.  The same results as the loop in feistel.c, in a
 * third of its time.
 */
#include "libshard/order/order.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2"), always_inline)) static inline

/* x * (m_hi * 2^32 + m_lo) mod 2^64 */
AVX2 __m256i times(__m256i x, __m256i m_lo, __m256i m_hi)
{
	__m256i x_hi = _mm256_srli_epi64(x, 32);
	__m256i cross = _mm256_add_epi64(_mm256_mul_epu32(x_hi, m_lo), _mm256_mul_epu32(x, m_hi));

	return _mm256_add_epi64(_mm256_mul_epu32(x, m_lo), _mm256_slli_epi64(cross, 32));
}

struct constants {
	__m256i m1_lo, m1_hi, m2_lo, m2_hi;
};

AVX2 __m256i all(uint64_t x)
{
	return _mm256_set1_epi64x((long long)x);
}

/*
 * round_add() of feistel.c; n is below 2^32, so the high half of scramble * n needs two products.
 */
AVX2 __m256i add_drawn(const struct constants *c, __m256i x, __m256i other, __m256i key, __m256i n)
{
	__m256i z = times(_mm256_xor_si256(other, key), c->m1_lo, c->m1_hi), low, drawn, d;

	z = times(_mm256_xor_si256(z, _mm256_srli_epi64(z, 32)), c->m2_lo, c->m2_hi);
	low = _mm256_srli_epi64(_mm256_mul_epu32(z, n), 32);
	drawn = _mm256_srli_epi64(_mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(z, 32), n), low), 32);
	d = _mm256_sub_epi64(_mm256_add_epi64(x, drawn), n); /* negative if the sum is below n */
	return _mm256_add_epi64(d, _mm256_and_si256(n, _mm256_cmpgt_epi64(_mm256_setzero_si256(), d)));
}

__attribute__((target("avx2"))) void feistel_rounds_avx2(const struct feistel *f, const uint64_t *tweak, uint64_t *hi,
							 uint64_t *lo, size_t count)
{
	const struct constants c = {all(RANDOM_M1), all(RANDOM_M1 >> 32), all(RANDOM_M2), all(RANDOM_M2 >> 32)};
	__m256i a = all(f->a), b = all(f->b);

	for (unsigned j = 0; j < FEISTEL_ROUNDS; j += 2) {
		__m256i k0 = all(f->key[j]), k1 = all(f->key[j + 1]);

		for (size_t i = 0; i < count; i += 4) {
			__m256i t = _mm256_loadu_si256((const void *)(tweak + i));
			__m256i h = _mm256_loadu_si256((const void *)(hi + i)),
				l = _mm256_loadu_si256((const void *)(lo + i));

			h = add_drawn(&c, h, l, _mm256_xor_si256(k0, t), a);
			l = add_drawn(&c, l, h, _mm256_xor_si256(k1, t), b);
			_mm256_storeu_si256((void *)(hi + i), h);
			_mm256_storeu_si256((void *)(lo + i), l);
		}
	}
}

bool feistel_has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

#else

bool feistel_has_avx2(void)
{
	return false;
}

void feistel_rounds_avx2(const struct feistel *f, const uint64_t *tweak, uint64_t *hi, uint64_t *lo, size_t count)
{
	(void)f, (void)tweak, (void)hi, (void)lo, (void)count; /* never called */
}

#endif
