/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feistel.c - Feistel networks of any size, one number at a time or the rounds of many, plainly
 */
#include "libshard/order/order.h"

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
	/*
	 * Ends: a pass is a bijection, so the walk from below n comes back below n.  Few walks have
	 * a second pass.
	 */
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
