/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.c - Fisher-Yates tables and Feistel networks of any size
 */
#include "libshard/order/permutation.h"

#include <string.h>

#include "libshard/order/feistel_avx2.h"
#include "libshard/order/random.h"

#define MANY 64 /* numbers in flight: enough to hide the latency of a round, and few enough for the first-level cache */

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
 * (x + what the round draws) mod n; both terms are below n, which is at most 2^31.  Written with a mask, as clang 14
 * makes a branch of `x >= n ? x - n : x` in the loop of feistel_rounds, and that is wrong half of the time (3 x slower).
 */
static inline uint64_t round_add(uint64_t x, uint64_t other, uint64_t key, uint64_t n)
{
	uint64_t d = x + random_below(random_scramble(other ^ key), n) - n; /* negative if the sum is below n */

	return d + (n & (uint64_t)((int64_t)d >> 63));
}

static inline uint64_t feistel_pass(const struct feistel *f, uint64_t tweak, uint64_t x)
{
	uint64_t hi = x / f->b, lo = x % f->b;

	for (uint32_t j = 0; j < FEISTEL_ROUNDS; j += 2) {
		hi = round_add(hi, lo, f->key[j] ^ tweak, f->a);
		lo = round_add(lo, hi, f->key[j + 1] ^ tweak, f->b);
	}
	return hi * f->b + lo;
}

uint64_t feistel_at(const struct feistel *f, uint64_t tweak, uint64_t x)
{
	/* Ends: a pass is a bijection, so the walk from below n comes back below n.  Few walks have a second pass. */
	do
		x = feistel_pass(f, tweak, x);
	while (x >= f->n);
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

static void feistel_some(const struct feistel *f, const uint64_t *tweak, uint64_t *x, size_t count)
{
	uint64_t hi[MANY], lo[MANY], b = f->b;
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
	for (size_t i = 0; i < count; i += MANY)
		feistel_some(f, tweak + i, x + i, count - i < MANY ? count - i : MANY);
}

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
	static const uint64_t no_tweak[MANY];

	if (p->table) {
		for (size_t i = 0; i < count; i++)
			x[i] = p->table[x[i]];
		return;
	}
	for (size_t i = 0; i < count; i += MANY)
		feistel_many(&p->feistel, no_tweak, x + i, count - i < MANY ? count - i : MANY);
}
