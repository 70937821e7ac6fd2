/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.h - a crew is the thread pool of a feed: it fills slots ahead of the consumer
 *
 * A thread claims the next step and a free slot under the lock.  It fills the slot without the
 * lock, and then reports.  Claims are queued in the order of steps, so slots come in order whatever
 * the timing.  A move makes the queue stale and changes the place of the next claim; it does not
 * wait for threads.  The first thread that needs the order of an epoch makes it.
 *
 * Somebody waits for the first slot after an open or a move.  If it is large, all threads fill
 * parts of it, before they go on to other slots.
 */
#ifndef SHARD_FEED_CREW_H
#define SHARD_FEED_CREW_H

#include "libshard/feed/crew_fill.h"

/*
 * Start the threads, which fill slots from `from` on.  What is named here is set: the supply, the
 * ring, which is open, the steps, thread_count, and what there is to transform.
 */
int crew_open(struct crew *c, struct place from, struct shard_error *err);
void crew_close(struct crew *c, bool inherited); /* inherited: the caller is a forked child */

/* ---- the consumer's side ---- */

/* Wait for the next slot in order.  It belongs to the consumer then, until crew_give(). */
uint32_t crew_take(struct crew *c);
/* Is that slot ready, and filled without an error? */
bool crew_has_sound(struct crew *c, uint32_t *slot);
/* Wait until that slot is ready, but not longer.  Returns false if it is not. */
bool crew_await(struct crew *c, uint64_t most_ns);
/* Free a slot.  Any thread may do this. */
void crew_give(struct crew *c, uint32_t slot);

/* Forget the slots that were prepared, and go on at `to`.  Does not wait. */
void crew_move(struct crew *c, struct place to);

/*
 * Forget the slots that were prepared, and wait until no thread is busy.  Then the steps and the
 * orders can be changed.  crew_move() ends the rest.
 */
void crew_rest(struct crew *c);
void crew_use_orders(struct crew *c, struct epoch_orders *orders);

/* Set all of *out.  What the crew does not count is 0. */
void crew_stats(struct crew *c, struct shard_loader_stats *out);

#endif
