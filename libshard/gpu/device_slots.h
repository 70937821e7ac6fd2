/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_slots.h - slots in the memory of a GPU: they are filled ahead, lent, and taken back
 *
 * The slots of a loader, or of a pool, have one stream on which they are filled: by the copies of
 * device_copy.h, or by a kernel of the pool.  This file knows neither.  The host waits for neither.
 * The stream of the borrower waits for the event `ready`.  The filling stream waits for the event
 * `done`, which comes behind the work of the borrower.
 *
 * Only the consumer calls these functions.  It has entered the context for those that can fail.
 */
#ifndef SHARD_GPU_DEVICE_SLOTS_H
#define SHARD_GPU_DEVICE_SLOTS_H

#include "libshard/feed/slot.h"
#include "libshard/gpu/device.h"

#define DEVICE_BATCH	 0x80000000u /* a bit of shard_batch.slot: the slot is one of the device */
#define DEVICE_SLOTS_MIN 2u	     /* batches in the memory of a GPU */
#define DEVICE_SLOTS_MAX 4u

struct device_slot {
	struct slot as; /* its memory is an address of the GPU; the arrays are the host's */
	void *ready;	/* event: the slot is filled */
	void *done;	/* event: the borrower is done with the slot */
	bool has_done;	/* `done` was recorded at least once */
	bool awaited;	/* the filling stream waits for `done` already */
	bool queued;	/* the slot is in the queue */
};

struct device_slots {
	const struct cuda_device *cuda; /* const after open, as: */
	void *stream;			/* the filling stream */
	uint64_t memory;		/* of all slots, an address of the GPU */
	uint32_t slot_count;		/* 0: not open */
	struct device_slot *slot;	/* [slot_count] */

	uint32_t lent_count;
	uint32_t next_slot; /* the search for a free slot begins here */
	uint32_t *queue;    /* [slot_count] slots that are filled, in the order of delivery */
	uint32_t queue_count;
};

/* Allocate the slots, of that layout, and make the filling stream. */
int device_slots_open(struct device_slots *o, const struct cuda_device *cuda, uint32_t slot_count,
		      const struct layout *layout, uint32_t batch_records, struct shard_error *err);
/*
 * Call device_slots_finish() before.  A forked child calls this too, with `inherited`, without
 * entering the context.  Then it only frees memory.
 */
void device_slots_close(struct device_slots *o, bool inherited);
/* Wait for the filling stream and, with `borrowers`, for work on slots that were given back. */
int device_slots_finish(struct device_slots *o, bool borrowers, struct shard_error *err);

/* ---- filling ---- */

/* Returns a slot that is neither lent nor queued, or NULL. */
struct device_slot *device_slots_find_free(struct device_slots *o);
/* Begin to fill a slot: what is queued on the filling stream from now on may write to it. */
int device_slots_begin(struct device_slots *o, struct device_slot *s, struct shard_error *err);
/* End filling it: the work that was queued there fills the slot. */
int device_slots_end(struct device_slots *o, struct device_slot *s, struct shard_error *err);
/* Add the slot to the queue. */
void device_slots_push(struct device_slots *o, struct device_slot *s);
/* Empty the queue.  Does not wait. */
void device_slots_forget(struct device_slots *o);

/* ---- lending ---- */

/* Is there a slot in the queue, or are all slots lent, so that there is nothing to wait for? */
bool device_slots_answers(const struct device_slots *o);
/* Make `stream` wait until the first slot of the queue is filled. */
int device_slots_await(const struct device_slots *o, void *stream, struct shard_error *err);
/* Lend that slot.  Returns its number. */
uint32_t device_slots_lend(struct device_slots *o);
/* Take a slot back, behind the work that is queued on `stream`. */
int device_slots_take_back(struct device_slots *o, uint32_t which, void *stream, struct shard_error *err);

#endif
