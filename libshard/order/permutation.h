/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.h - keyed permutations of [0, n): format/ORDER.md, part 3
 *
 * A table where n is small enough, a Feistel network where it is not.  Prepared once, constant
 * afterwards: any thread may ask.  Memory for tables belongs to the caller.
 */
#ifndef SHARD_ORDER_PERMUTATION_H
#define SHARD_ORDER_PERMUTATION_H

#include "libshard/order/feistel.h"

#define PERMUTATION_TABLE_MAX 65536 /* so that an entry fits 16 bits and a table the second-level cache */
#define PERMUTATION_N_MAX     FEISTEL_N_MAX

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
