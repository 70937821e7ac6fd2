/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew_fill.h - what a crew is, and how its threads claim steps and fill the slots of these
 */
#ifndef SHARD_FEED_CREW_FILL_H
#define SHARD_FEED_CREW_FILL_H

#include <pthread.h>

#include "libshard/feed/epoch_orders.h"
#include "libshard/feed/ring.h"
#include "libshard/feed/supply.h"

struct steps;
struct transformed;

#define NO_SLOT UINT32_MAX

enum claim_state { CLAIM_FREE, CLAIM_FILLING, CLAIM_READY, CLAIM_TAKEN };

/* What the crew knows of a slot. */
struct claim {
	enum claim_state state; /* lock */
	bool stale;		/* lock: it is being filled for a place that a move has left */
	uint32_t next_row;	/* lock: the first one that no thread has taken */
	uint32_t part_rows;	/* lock: a thread takes so many; 0: it is not known yet which records they have */
	uint32_t fillers;	/* lock: threads that are at it */
	uint32_t failed_row;	/* lock: rc is of the part that begins there */
	uint64_t fill_ns;	/* lock: of all parts, as: */
	struct fill_counts counts;
	int rc; /* how filling went: lock; then the slot's owner uses this and what follows */
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
	const struct transformed *transformed; /* NULL: rows are records as they are */
	const struct layout *layout;	       /* of slots */
	const struct steps *steps;	       /* what it points to changes only while the crew rests */
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
	bool is_awaited;			      /* lock: somebody waits for the slot that is claimed next */
	uint32_t shared;			      /* lock: threads take parts of this slot; or NO_SLOT */
	bool awaits_slot;		 /* lock: the consumer waits, as the GPU or the caller has all slots */
	bool waited;			 /* lock: the consumer has waited for the slot that it takes next */
	struct shard_loader_stats stats; /* lock: what the crew counts */
};

/* With lock.  The slot can be claimed again. */
void crew_push_free(struct crew *c, uint32_t slot);

/* With lock, which is given up while it works.  Fill a free slot, if there still is one. */
void crew_fill_one(struct crew *c, struct member *m);

/*
 * With lock, which is given up meanwhile.  Take parts of the slot that is shared, or wait until its
 * records are known.
 */
void crew_help(struct crew *c, struct member *m);

#endif
