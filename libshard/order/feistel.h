/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feistel.h - keyed permutations of [0, n) without memory: format/ORDER.md, part 3
 *
 * Prepared once, constant afterwards: any thread may ask.
 */
#ifndef SHARD_ORDER_FEISTEL_H
#define SHARD_ORDER_FEISTEL_H

#include <stddef.h>
#include <stdint.h>

#define FEISTEL_N_MAX  ((uint64_t)1 << 62)
#define FEISTEL_ROUNDS 12 /* even */

struct feistel {
	uint64_t n; /* 1 to FEISTEL_N_MAX */
	uint64_t a; /* ceil(n / b): the numbers of [0, a * b) are hi * b + lo */
	uint64_t b; /* ceil(sqrt(n)) */
	uint64_t key[FEISTEL_ROUNDS];
};

void feistel_init(struct feistel *f, uint64_t n, uint64_t key);
/* x is below n.  Each tweak makes another permutation. */
uint64_t feistel_at(const struct feistel *f, uint64_t tweak, uint64_t x);
/*
 * The rounds, on numbers hi[i] * b + lo[i], in place: for every machine, and the slow twin of
 * feistel_avx2.h.
 */
void feistel_rounds(const struct feistel *f, const uint64_t *tweak, uint64_t *hi, uint64_t *lo, size_t count);

#endif
