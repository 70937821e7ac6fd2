/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pins.h - page-locks on a ring, so that a GPU reads it by itself
 *
 * Each slot is page-locked by itself, in chunks if it is very large, and a copy never crosses the end
 * of a chunk.  A thread does it while the crew fills the first slots already; a batch waits for its own
 * slot only.  Where the system refuses, all still works, through memory that the driver copies once
 * more.
 */
#ifndef SHARD_GPU_PINS_H
#define SHARD_GPU_PINS_H

#include <pthread.h>

#include "libshard/cuda/device.h"
#include "libshard/load/ring.h"

enum pin_state { PIN_PENDING, PIN_LOCKED, PIN_UNLOCKED };

struct pins {
	const struct ring *ring; /* const after open, as: */
	const struct cuda_device *cuda;
	uint64_t chunk_bytes; /* of a slot, page-locked at once */
	pthread_t thread;
	bool has_thread, has_lock;

	pthread_mutex_t lock;
	pthread_cond_t change;	/* with lock: the state of a slot */
	enum pin_state *state;	/* [slot_count] lock */
	uint64_t bytes;		/* lock: that are page-locked, by us or by their owner */
	bool late;		/* lock: the system takes too long, and no batch waits for it any more */
	struct shard_error why; /* lock: why a slot is not page-locked, the first of them; status 0: none */
};

/*
 * Page-lock the slots of our own ring, one after the other, by a thread.  Of a ring in memory that was
 * lent, see whether its owner has done so.  A refusal is no error; `why` tells it.  Entered.
 */
int pins_open(struct pins *p, const struct ring *ring, const struct cuda_device *cuda, struct shard_error *err);
/* Nothing copies from the ring any more.  Entered, unless inherited by a child. */
void pins_close(struct pins *p, bool inherited);

bool pins_knows(struct pins *p, uint32_t slot); /* is the slot's state known? */
bool pins_has(struct pins *p, uint32_t slot);	/* is it page-locked?  Waits until that is known, within reason */
uint64_t pins_bytes(struct pins *p);		/* page-locked so far */
bool pins_problem(struct pins *p, struct shard_error *out); /* false: nothing was refused */

#endif
