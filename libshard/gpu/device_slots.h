/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_slots.h - slots in the memory of a GPU: they are filled ahead, lent, and taken back
 *
 * An outlet has a stream on which its slots are filled.  It does not know who fills them: a device
 * side does so by copies, and a pool by a kernel.  The host waits for neither.  The stream of the
 * borrower waits for the event `ready`.  The filling stream waits for the event `done`, which comes
 * behind the work of the borrower.
 *
 * Only the consumer calls these functions.  It has entered the context for those that can fail.
 */
#ifndef SHARD_GPU_DEVICE_SLOTS_H
#define SHARD_GPU_DEVICE_SLOTS_H

#include "libshard/cuda/device.h"
#include "libshard/feed/slot.h"

#define DEVICE_BATCH	 0x80000000u /* a bit of shard_batch.slot: it is a slot of an outlet */
#define DEVICE_SLOTS_MIN 2u	     /* batches in the memory of a GPU */
#define DEVICE_SLOTS_MAX 4u

struct outlet_slot {
	struct slot as; /* its memory is an address of the GPU; the arrays are the host's */
	void *ready;	/* event: the slot is filled */
	void *done;	/* event: the borrower is done with the slot */
	bool has_done;	/* `done` was recorded at least once */
	bool awaited;	/* the filling stream waits for `done` already */
	bool queued;	/* the slot is in the queue */
};

struct outlet {
	const struct cuda_device *cuda; /* const after open, as: */
	void *stream;		  /* the filling stream */
	uint64_t memory;	  /* of all slots, an address of the GPU */
	uint32_t slot_count;	  /* 0: the outlet is not open */
	struct outlet_slot *slot; /* [slot_count] */

	uint32_t lent_count;
	uint32_t next_slot; /* the search for a free slot begins here */
	uint32_t *queue;    /* [slot_count] slots that are filled, in the order of delivery */
	uint32_t queue_count;
};

/* Allocate the slots, and make the filling stream. */
int outlet_open(struct outlet *o, const struct cuda_device *cuda, uint32_t slot_count, uint64_t slot_bytes,
		uint32_t batch_records, struct shard_error *err);
/*
 * Call outlet_finish() before.  A forked child calls this too, with `inherited`, without entering
 * the context.  Then it only frees memory.
 */
void outlet_close(struct outlet *o, bool inherited);
/* Wait for the filling stream and, with `borrowers`, for work on slots that were given back. */
int outlet_finish(struct outlet *o, bool borrowers, struct shard_error *err);

/* ---- filling ---- */

/* Returns a slot that is neither lent nor queued, or NULL. */
struct outlet_slot *outlet_find_free(struct outlet *o);
/* Begin to fill a slot: what is queued on the filling stream from now on may write to it. */
int outlet_begin(struct outlet *o, struct outlet_slot *s, struct shard_error *err);
/* End filling it: the work that was queued there fills the slot. */
int outlet_end(struct outlet *o, struct outlet_slot *s, struct shard_error *err);
/* Add the slot to the queue. */
void outlet_push(struct outlet *o, struct outlet_slot *s);
/* Make the filling stream wait for all work on slots that were given back. */
int outlet_await_borrowers(struct outlet *o, struct shard_error *err);
/* Empty the queue.  Does not wait. */
void outlet_forget(struct outlet *o);

/* ---- lending ---- */

/* Is there a slot in the queue, or are all slots lent, so that there is nothing to wait for? */
bool outlet_answers(const struct outlet *o);
/* Make `stream` wait until the first slot of the queue is filled. */
int outlet_await(const struct outlet *o, void *stream, struct shard_error *err);
/* Lend that slot.  Returns its number. */
uint32_t outlet_lend(struct outlet *o);
/* Take a slot back, behind the work that is queued on `stream`. */
int outlet_take_back(struct outlet *o, uint32_t which, void *stream, struct shard_error *err);

#endif
