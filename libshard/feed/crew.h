/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.h - a crew is the thread pool of a feed: it fills slots ahead of the consumer
 *
 * A thread claims the next step and a free slot under the lock.  It fills the slot without the
 * lock, and then reports.  Claims are queued in the order of steps, so slots come in order whatever
 * the timing.  A move makes the queue stale and changes the place of the next claim; it does not
 * wait for threads.  The first thread that needs the order of an epoch makes it.
 */
#ifndef SHARD_FEED_CREW_H
#define SHARD_FEED_CREW_H

#include <pthread.h>

#include "libshard/feed/epoch_orders.h"
#include "libshard/feed/ring.h"
#include "libshard/feed/supply.h"

struct steps;

enum claim_state { CLAIM_FREE, CLAIM_FILLING, CLAIM_READY, CLAIM_TAKEN };

/* What the crew knows of a slot. */
struct claim {
	enum claim_state state; /* lock */
	bool stale;		/* lock: it is being filled for a place that a move has left */
	int rc;			/* how filling went; the slot's owner uses this and what follows */
	uint64_t repaired;	/* rows that were substituted or masked */
	struct shard_error why;
};

struct member {
	struct crew *crew;
	pthread_t thread;
	struct scratch scratch;
	struct slot ahead; /* records of a later step, and no memory */
};

struct crew {
	struct supply *supply; /* const after open, as: */
	struct ring *ring;
	const struct steps *steps; /* what it points to changes only while the crew rests */
	uint32_t thread_count;
	struct member *member; /* [thread_count] */
	uint32_t member_count; /* threads that were started; 0: the consumer does all the work */
	struct claim *claim;   /* [slot_count] */

	pthread_mutex_t lock;
	pthread_cond_t work;  /* with lock: a slot or an order may be there, or `stop` is set */
	pthread_cond_t ready; /* with lock: the first slot of the queue is ready, or `busy` is 0 */
	uint32_t *queue;      /* [slot_count] lock: slots that are claimed, in the order of steps */
	uint32_t *free;	      /* [slot_count] lock: slots that can be claimed */
	uint32_t queue_head, queue_count, free_count; /* lock */
	struct place next;			      /* lock: the next place to be claimed */
	struct epoch_orders orders;		      /* lock; replaced only while the crew rests */
	uint32_t busy;				      /* lock: threads that fill a slot or make an order */
	bool stop, resting;			      /* lock: threads claim nothing */
	bool awaits_slot;		 /* lock: the consumer waits, as the GPU or the caller has all slots */
	bool waited;			 /* lock: the consumer has waited for the slot that it takes next */
	struct shard_loader_stats stats; /* lock: what the crew counts */
};

/* Start the threads, which fill slots from `from` on.  The ring is open. */
int crew_open(struct crew *c, struct supply *supply, struct ring *ring, const struct steps *steps,
	      uint32_t thread_count, struct place from, struct shard_error *err);
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
