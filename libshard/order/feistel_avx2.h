/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feistel_avx2.h - the rounds of a Feistel network for four numbers at once, where the processor
 * can
 */
#ifndef SHARD_ORDER_FEISTEL_AVX2_H
#define SHARD_ORDER_FEISTEL_AVX2_H

#include <stdbool.h>

#include "libshard/order/feistel.h"

bool feistel_has_avx2(void);

/* All rounds on numbers hi[i] * b + lo[i], in place.  count is a multiple of 4. */
void feistel_rounds_avx2(const struct feistel *f, const uint64_t *tweak, uint64_t *hi, uint64_t *lo, size_t count);

#endif
