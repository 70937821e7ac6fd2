/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_check.c - see unit_check.h
 */
#include "libshard/load/unit_check.h"

#include <sched.h>

atomic_bool *unit_check_enter(struct supply *s, const struct shard_reader *r, uint64_t unit)
{
	atomic_bool *stripe = &s->stripe[(((uintptr_t)r >> 6) + unit) % SUPPLY_STRIPES];

	while (atomic_exchange_explicit(stripe, true, memory_order_acquire))
		sched_yield();
	return stripe;
}
