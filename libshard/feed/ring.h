/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - the memory that batches are delivered in: slots of one size, one behind the other
 */
#ifndef SHARD_FEED_RING_H
#define SHARD_FEED_RING_H

#include "libshard/feed/slot.h"

struct ring { /* const after ring_open(), except for the contents of slots */
	uint8_t *memory;
	void *lent; /* memory of the caller, which is used instead of our own; or NULL */
	uint64_t slot_bytes;
	uint32_t slot_count;
	struct slot *slot; /* [slot_count]; NULL: the ring is not open */
};

uint64_t ring_bytes(const struct ring *r);
/* Fill in slot_bytes, slot_count and lent before.  `whole_count` is that of the layout. */
int ring_open(struct ring *r, uint32_t batch_records, uint32_t whole_count, struct shard_error *err);
/* `inherited`: the caller is a forked child, which does not have the memory of the ring. */
/*
 * While a thread fills the first slot from its begin, clear its pages from its end, as long as
 * is_needed() says so.  Clearing takes as long as filling.  Not of lent memory.
 */
void ring_clear_first(const struct ring *r, bool (*is_needed)(void *context), void *context);
void ring_close(struct ring *r, bool inherited);

#endif
