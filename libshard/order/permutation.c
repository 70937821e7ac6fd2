/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.c - a Fisher-Yates table or a Feistel network, by size: format/ORDER.md, part 3
 */
#include "libshard/order/order.h"

#include <string.h>

#include "libshard/base/cpu.h"

/* ---- Feistel networks, one number at a time or the rounds of many, plainly ---- */

/* The least b with b * b >= n. */
static uint64_t ceil_sqrt(uint64_t n)
{
	uint64_t root = 0; /* the largest with root * root < n, found from its highest bit down */

	for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) < n)
			root += bit;
	return root + 1;
}

void feistel_init(struct feistel *f, uint64_t n, uint64_t key)
{
	f->n = n;
	f->b = ceil_sqrt(n);
	f->a = (n + f->b - 1) / f->b;
	for (uint32_t j = 0; j < FEISTEL_ROUNDS; j++)
		f->key[j] = random_draw(key, j);
}

/*
 * (x + what the round draws) mod n; both terms are below n, which is at most 2^31.  Written with a
 * mask, as clang 14 makes a branch of `x >= n ? x - n : x` in the loop of feistel_rounds, and that
 * is wrong half of the time (3 x slower).
 */
static inline uint64_t round_add(uint64_t x, uint64_t other, uint64_t key, uint64_t n)
{
	uint64_t d = x + random_below(random_scramble(other ^ key), n) - n; /* negative if the sum is below n */

	return d + (n & (uint64_t)((int64_t)d >> 63));
}

uint64_t feistel_at(const struct feistel *f, uint64_t tweak, uint64_t x)
{
	/*
	 * Ends: a pass is a bijection, so the walk from below n comes back below n.  Few walks have
	 * a second pass.
	 */
	do {
		uint64_t hi = x / f->b, lo = x % f->b;

		for (uint32_t j = 0; j < FEISTEL_ROUNDS; j += 2) {
			hi = round_add(hi, lo, f->key[j] ^ tweak, f->a);
			lo = round_add(lo, hi, f->key[j + 1] ^ tweak, f->b);
		}
		x = hi * f->b + lo;
	} while (x >= f->n);
	return x;
}

void feistel_rounds(const struct feistel *f, const uint64_t *tweak, uint64_t *hi, uint64_t *lo, size_t count)
{
	uint64_t a = f->a, b = f->b;

	for (uint32_t j = 0; j < FEISTEL_ROUNDS; j += 2) {
		uint64_t k0 = f->key[j], k1 = f->key[j + 1];

		for (size_t i = 0; i < count; i++) {
			hi[i] = round_add(hi[i], lo[i], k0 ^ tweak[i], a);
			lo[i] = round_add(lo[i], hi[i], k1 ^ tweak[i], b);
		}
	}
}

/*
 * ---- the rounds for four numbers at once ----
 *
 * Numbers are below 2^31, keys and tweaks of 64 bits.  AVX2 has no 64-bit multiplication: products
 * are put together from those of halves.  The same results as feistel_rounds(), in a third of its
 * time.
 */

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

/* round_add(); n is below 2^32, so the high half of scramble * n needs two products. */
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
	return cpu_has_avx2();
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

/* ---- many numbers ---- */

static void feistel_chunk(const struct feistel *f, const uint64_t *tweak, uint64_t *x, size_t count)
{
	uint64_t hi[FEISTEL_MANY], lo[FEISTEL_MANY], b = f->b;
	size_t fours = feistel_has_avx2() ? count / 4 * 4 : 0;

	for (size_t i = 0; i < count; i++) {
		hi[i] = x[i] / b;
		lo[i] = x[i] % b;
	}
	if (fours)
		feistel_rounds_avx2(f, tweak, hi, lo, fours);
	feistel_rounds(f, tweak + fours, hi + fours, lo + fours, count - fours);
	for (size_t i = 0; i < count; i++) {
		x[i] = hi[i] * b + lo[i];
		if (x[i] >= f->n)
			x[i] = feistel_at(f, tweak[i], x[i]);
	}
}

void feistel_many(const struct feistel *f, const uint64_t *tweak, uint64_t *x, size_t count)
{
	for (size_t i = 0; i < count; i += FEISTEL_MANY)
		feistel_chunk(f, tweak + i, x + i, count - i < FEISTEL_MANY ? count - i : FEISTEL_MANY);
}

/* ---- by size ---- */

void permutation_table(uint16_t *table, uint64_t n, uint64_t key)
{
	for (uint64_t i = 0; i < n; i++)
		table[i] = (uint16_t)i;
	for (uint64_t i = n; i-- > 1;) {
		uint64_t j = random_below(random_draw(key, i), i + 1);
		uint16_t t = table[i];

		table[i] = table[j];
		table[j] = t;
	}
}

size_t permutation_table_entries(uint64_t n)
{
	return n <= PERMUTATION_TABLE_MAX ? (size_t)n : 0;
}

void permutation_init(struct permutation *p, uint64_t n, uint64_t key, uint16_t *table)
{
	memset(p, 0, sizeof(*p));
	p->feistel.n = n;
	if (n <= PERMUTATION_TABLE_MAX) {
		permutation_table(table, n, key);
		p->table = table;
	} else {
		feistel_init(&p->feistel, n, key);
	}
}

uint64_t permutation_at(const struct permutation *p, uint64_t x)
{
	return p->table ? p->table[x] : feistel_at(&p->feistel, 0, x);
}

void permutation_many(const struct permutation *p, uint64_t *x, size_t count)
{
	static const uint64_t no_tweak[FEISTEL_MANY];

	if (p->table) {
		for (size_t i = 0; i < count; i++)
			x[i] = p->table[x[i]];
		return;
	}
	for (size_t i = 0; i < count; i += FEISTEL_MANY)
		feistel_many(&p->feistel, no_tweak, x + i, count - i < FEISTEL_MANY ? count - i : FEISTEL_MANY);
}
