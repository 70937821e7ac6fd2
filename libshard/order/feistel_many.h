/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feistel_many.h - a Feistel network for many numbers at once, as fast as the processor can
 */
#ifndef SHARD_ORDER_FEISTEL_MANY_H
#define SHARD_ORDER_FEISTEL_MANY_H

#include "libshard/order/feistel.h"

#define FEISTEL_MANY \
	64 /* numbers in flight: enough to hide the latency of a round, and few enough for the first-level cache */

/* x[i] becomes feistel_at(f, tweak[i], x[i]).  Several times faster, as no x waits for another. */
void feistel_many(const struct feistel *f, const uint64_t *tweak, uint64_t *x, size_t count);

#endif
