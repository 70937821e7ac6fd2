/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pins.h - page-locks on a ring, so that a GPU reads it by itself
 *
 * A thread page-locks slot after slot, while the crew fills the first ones.  A batch waits only for
 * its own slot.  A very large slot is page-locked in chunks, and no copy may cross the end of a
 * chunk.  If the system refuses, the driver copies the batch once more, which is slower.  A slot
 * that is refused because a CUDA graph is being captured is tried once more.
 */
#ifndef SHARD_GPU_PINS_H
#define SHARD_GPU_PINS_H

#include <pthread.h>

#include "libshard/feed/ring.h"
#include "libshard/gpu/device.h"

enum pin_state { PIN_PENDING, PIN_LOCKED, PIN_UNLOCKED };

struct pins {
	const struct ring *ring; /* const after open, as: */
	const struct cuda_device *cuda;
	uint64_t chunk_bytes; /* of a slot that are page-locked at once */
	pthread_t thread;
	bool has_thread, has_lock;

	pthread_mutex_t lock;
	pthread_cond_t change;	/* with lock: the state of a slot has changed */
	enum pin_state *state;	/* [slot_count] lock */
	uint64_t bytes;		/* lock: that are page-locked, by us or by their owner */
	bool late;		/* lock: the system takes too long, so no batch waits any more */
	bool has_refusal;	/* lock: `why` is about a slot that was refused */
	struct shard_error why; /* lock: why the first slot was refused, or is late; status 0: none was */
};

/*
 * Start to page-lock the ring.  If its memory was lent, see what its owner has page-locked.  A
 * refusal is not an error; pins_problem() tells about it.  The context is entered.
 */
int pins_open(struct pins *p, const struct ring *ring, const struct cuda_device *cuda, struct shard_error *err);
/* Copies have finished.  The context is entered, except in a forked child, with `inherited`. */
void pins_close(struct pins *p, bool inherited);

/* Is it known whether this slot is page-locked? */
bool pins_knows(struct pins *p, uint32_t slot);
/* Is this slot page-locked?  Waits some seconds at most until that is known. */
bool pins_has(struct pins *p, uint32_t slot);
uint64_t pins_bytes(struct pins *p);			    /* that are page-locked so far */
bool pins_problem(struct pins *p, struct shard_error *out); /* false: nothing was refused */

#endif
