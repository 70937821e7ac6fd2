/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.c - a Fisher-Yates table or a Feistel network, by size
 */
#include "libshard/order/order.h"

#include <string.h>

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
