/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.h - keyed permutations of [0, n): format/ORDER.md, part 3
 *
 * A table where n is small enough, a Feistel network where it is not.  Prepared once, constant afterwards: any thread
 * may ask.  Memory for tables belongs to the caller.
 */
#ifndef ORDER_PERMUTATION_H
#define ORDER_PERMUTATION_H

#include <stddef.h>
#include <stdint.h>

#define PERMUTATION_TABLE_MAX 65536 /* so that an entry fits 16 bits and a table the second-level cache */
#define PERMUTATION_N_MAX     ((uint64_t)1 << 62)
#define FEISTEL_ROUNDS	      12 /* even */

struct feistel {
	uint64_t n; /* 1 to PERMUTATION_N_MAX */
	uint64_t a; /* ceil(n / b): the numbers of [0, a * b) are hi * b + lo */
	uint64_t b; /* ceil(sqrt(n)) */
	uint64_t key[FEISTEL_ROUNDS];
};

void feistel_init(struct feistel *f, uint64_t n, uint64_t key);
/* x is below n.  Each tweak makes another permutation. */
uint64_t feistel_at(const struct feistel *f, uint64_t tweak, uint64_t x);
/* The same for many: x[i] becomes its image with tweak[i].  Several times faster, as no x waits for another. */
void feistel_many(const struct feistel *f, const uint64_t *tweak, uint64_t *x, size_t count);
/* Its rounds, on numbers hi[i] * b + lo[i], in place: what any machine can run, and the twin of feistel_avx2.h. */
void feistel_rounds(const struct feistel *f, const uint64_t *tweak, uint64_t *hi, uint64_t *lo, size_t count);

/* Fisher-Yates: table[0, n) becomes a permutation of n, which is at most PERMUTATION_TABLE_MAX. */
void permutation_table(uint16_t *table, uint64_t n, uint64_t key);

struct permutation {
	const uint16_t *table; /* NULL: the network */
	struct feistel feistel;
};

/* Entries of table memory that permutation_init wants: n, or 0 if it will be a network. */
size_t permutation_table_entries(uint64_t n);
/* An n of 0 is allowed, and then nothing may be asked. */
void permutation_init(struct permutation *p, uint64_t n, uint64_t key, uint16_t *table);
uint64_t permutation_at(const struct permutation *p, uint64_t x);
void permutation_many(const struct permutation *p, uint64_t *x, size_t count);

#endif
