/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.h - the crew is a feed's thread pool: it fills slots ahead of the consumer
 *
 * A thread claims the next step and a free slot under the lock, fills the slot without it, and says so.
 * Claims are queued in the order of steps, so slots come in order whatever the timing.  A move makes what
 * is queued stale and changes the place of the next claim; nobody waits for it.  The order of an epoch is
 * made by the first thread that needs it.
 */
#ifndef SHARD_LOAD_CREW_H
#define SHARD_LOAD_CREW_H

#include <pthread.h>

#include "libshard/load/epoch_orders.h"
#include "libshard/load/ring.h"
#include "libshard/load/supply.h"

struct steps;

enum claim_state { CLAIM_FREE, CLAIM_FILLING, CLAIM_READY, CLAIM_TAKEN };

/* What the crew knows of a slot. */
struct claim {
	enum claim_state state; /* lock */
	bool stale;		/* lock: being filled for a place that a move has left */
	/* How filling went.  The thread's that fills it, then the consumer's. */
	int rc;
	struct shard_error why;
};

struct member {
	struct crew *crew;
	pthread_t thread;
	struct scratch scratch;
};

struct crew {
	struct supply *supply;	   /* const after open, as all that does not say otherwise */
	struct ring *ring;	   /* its slots belong to who claims or takes them */
	const struct steps *steps; /* change only while everybody rests */
	uint32_t thread_count;
	struct member *member; /* [thread_count]; NULL: the crew is not open */
	uint32_t member_count; /* threads that could be started; 0: the consumer does it all */

	pthread_mutex_t lock;
	pthread_cond_t work;  /* with lock: there may be something to claim, or an order was made, or stop */
	pthread_cond_t ready; /* with lock: the slot at the head is ready, or no thread is busy any more */
	struct claim *claim;  /* [slot_count] */
	uint32_t *queue;      /* [slot_count] lock: slots that are claimed, in the order of steps */
	uint32_t *free;	      /* [slot_count] lock: slots that can be claimed */
	uint32_t queue_head, queue_count, free_count; /* lock */
	struct place next;	     /* lock: the next place to be claimed */
	struct epoch_orders orders;  /* lock; replaced only while everybody rests */
	uint32_t busy;		     /* lock: threads that fill a slot or make an order */
	bool stop, resting;	     /* lock: no thread claims */
	bool awaits_slot; /* lock: the consumer waits, and all slots are with the GPU's driver, or lent */
	bool waited;	  /* lock: the consumer waited for the slot that it takes next */
	struct shard_loader_stats stats; /* lock: those that the crew counts */
};

/* The ring is open.  Threads start, and fill from `from` on. */
int crew_open(struct crew *c, struct supply *supply, struct ring *ring, const struct steps *steps,
	      uint32_t thread_count, struct place from, struct shard_error *err);
void crew_close(struct crew *c, bool inherited); /* inherited: by a child process, which has no threads */

/* ---- the consumer's side ---- */

uint32_t crew_take(struct crew *c); /* waits for the next slot in order, which is the consumer's then */
bool crew_has_sound(struct crew *c, uint32_t *slot); /* that one is ready, and filled without an error */
bool crew_await(struct crew *c, uint64_t most_ns);   /* false: it was not ready within that time */
void crew_give(struct crew *c, uint32_t slot);	     /* the slot is free again; any thread may say so */

/* Forget what was prepared and go on there.  Waits for nothing. */
void crew_move(struct crew *c, struct place to);

/* Forget it, and wait until nobody is busy; crew_move() ends the rest.  Meanwhile orders can be replaced. */
void crew_rest(struct crew *c);
void crew_use_orders(struct crew *c, struct epoch_orders *orders);

/* Sets all of *out: to zero what the crew does not count. */
void crew_stats(struct crew *c, struct shard_loader_stats *out);

#endif
