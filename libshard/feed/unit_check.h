/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_check.h - whether a unit has to be hashed before a record of it is delivered
 *
 * With SHARD_CHECK_DEVICE and SHARD_CHECK_FIRST a unit is hashed when the dataset first delivers
 * a record of it.  With SHARD_CHECK_DEVICE that is forgotten when the unit may have come from a
 * device again.  Bytes that have just come from one are always hashed.
 *
 * Several threads may need the same unit at once: its records stand in neighbouring steps, or at
 * the end of one epoch and the start of the next.  Then one thread hashes it, which takes some
 * microseconds, and the others wait.
 */
#ifndef SHARD_FEED_UNIT_CHECK_H
#define SHARD_FEED_UNIT_CHECK_H

#include <sched.h>

#include "libshard/dataset/reader.h"
#include "libshard/feed/supply.h"
#include "shard_pack.h"

struct unit_check {
	bool hash; /* the caller has to hash the unit */
	struct reader_group *g;
	_Atomic uint64_t *seen; /* the word with the bit of the unit; NULL: the unit is hashed, whatever was before */
	uint64_t bit;
	atomic_bool *stripe; /* held by this thread, or NULL */
};

/* Wait while another thread hashes a unit of the same stripe.  Returns the stripe. */
static inline atomic_bool *unit_check_enter(struct supply *s, const struct shard_reader *r, uint64_t unit)
{
	atomic_bool *stripe = &s->stripe[(((uintptr_t)r >> 6) + unit) % SUPPLY_STRIPES];

	while (atomic_exchange_explicit(stripe, true, memory_order_acquire))
		sched_yield();
	return stripe;
}

/* fresh: the bytes have just come from a device. */
static inline struct unit_check unit_check_begin(struct supply *s, struct shard_reader *r, uint32_t group,
						 uint64_t unit, bool fresh)
{
	struct unit_check c = {.hash = r->check == SHARD_CHECK_ALWAYS || (fresh && r->check == SHARD_CHECK_DEVICE),
			       .g = &r->group[group],
			       .bit = UINT64_C(1) << (unit & 63)};

	if (!c.hash && reader_remembers(r)) {
		/* The table exists since the first record of the shard was located. */
		c.seen = atomic_load_explicit(&r->group[group].seen, memory_order_acquire) + unit / 64;
		c.hash = !(atomic_load_explicit(c.seen, memory_order_acquire) & c.bit);
	}
	if (c.hash && c.seen) {
		c.stripe = unit_check_enter(s, r, unit);
		c.hash = !(atomic_load_explicit(c.seen, memory_order_acquire) & c.bit);
	}
	return c;
}

/*
 * Tell whether the unit is sound.  If it was hashed, *checked counts it.  Another loader of the
 * same dataset may have hashed it at the same moment; then only one of them counts it.
 */
static inline void unit_check_end(const struct unit_check *c, bool sound, uint64_t *checked)
{
	if (sound && c->hash)
		*checked += !c->seen || reader_set_seen(c->g, c->seen, c->bit);
	if (c->stripe)
		atomic_store_explicit(c->stripe, false, memory_order_release);
}

#endif
