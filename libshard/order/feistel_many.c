/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feistel_many.c - a Feistel network for many numbers at once, as fast as the processor can
 */
#include "libshard/order/order.h"

static void feistel_some(const struct feistel *f, const uint64_t *tweak, uint64_t *x, size_t count)
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
		feistel_some(f, tweak + i, x + i, count - i < FEISTEL_MANY ? count - i : FEISTEL_MANY);
}
