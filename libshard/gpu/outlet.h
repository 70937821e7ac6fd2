/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outlet.h - slots in the memory of a GPU: filled ahead, lent, and taken back
 *
 * Slots are filled on a stream of our own.  An outlet does not know by what: a device side copies to
 * them, a pool has a kernel write them.  The host waits for none of that.  The borrower's stream waits
 * for the event `ready`, and what fills a slot again waits for the event `done`, which stands behind the
 * borrower's work.
 *
 * An outlet belongs to the consumer.  Calls that take an error stand between cuda_enter() and
 * cuda_leave().
 */
#ifndef SHARD_GPU_OUTLET_H
#define SHARD_GPU_OUTLET_H

#include "libshard/cuda/device.h"
#include "libshard/load/slot.h"

#define DEVICE_BATCH	 0x80000000u /* in shard_batch.slot, with the number of a slot in an outlet */
#define DEVICE_SLOTS_MIN 2u	     /* of an outlet whose slots are lent to the caller */
#define DEVICE_SLOTS_MAX 4u

struct outlet_slot {
	struct slot as; /* memory is an address of the device; record and row_flags are the host's */
	void *ready;	/* event: the slot is filled */
	void *done;	/* event: the borrower is done with it */
	bool has_done;	/* `done` was recorded, and stays so */
	bool awaited;	/* the filling stream is behind `done` */
	bool queued;	/* it is in the queue */
};

struct outlet {
	const struct cuda_device *cuda; /* const after open, as: */
	void *stream;			/* the filling stream */
	uint64_t memory;		/* of all slots, an address of the device */
	uint32_t slot_count;		/* 0: it is not open */
	struct outlet_slot *slot;	/* [slot_count] */

	uint32_t lent_count;
	uint32_t next_slot;   /* the slot that was given back longest ago */
	uint32_t *queue;      /* [slot_count] slots that were filled ahead, in the order of delivery */
	uint32_t queue_count;
};

/* Memory for so many slots, and a stream to fill them on. */
int outlet_open(struct outlet *o, const struct cuda_device *cuda, uint32_t slot_count, uint64_t slot_bytes,
		uint32_t batch_records, struct shard_error *err);
/* Nothing uses the slots any more: outlet_finish() was called.  Entered, unless inherited by a child. */
void outlet_close(struct outlet *o, bool inherited);
/* Wait until the filling stream has nothing to do, and with `borrowers` all work on slots given back. */
int outlet_finish(struct outlet *o, bool borrowers, struct shard_error *err);

/* ---- filling ---- */

/* A slot that is neither lent nor queued; NULL: there is none. */
struct outlet_slot *outlet_find_free(struct outlet *o);
/* What is queued on the filling stream from now on may write to the slot. */
int outlet_begin(struct outlet *o, struct outlet_slot *s, struct shard_error *err);
/* What was queued there fills the slot. */
int outlet_end(struct outlet *o, struct outlet_slot *s, struct shard_error *err);
/* The slot is to be lent, behind those that were pushed before. */
void outlet_push(struct outlet *o, struct outlet_slot *s);
/* What is queued there from now on stands behind all work on slots that were given back. */
int outlet_await_borrowers(struct outlet *o, struct shard_error *err);
/* The queue is not wanted any more.  Waits for nothing. */
void outlet_forget(struct outlet *o);

/* ---- lending ---- */

/* Is it open, and has it a slot to lend, or none that could be filled?  Need not be entered. */
bool outlet_answers(const struct outlet *o);
/* What is queued on `stream` from now on finds the slot at the head of the queue filled. */
int outlet_await(const struct outlet *o, void *stream, struct shard_error *err);
uint32_t outlet_lend(struct outlet *o); /* that slot is lent; returns which */
/* It is given back, behind what is queued on `stream`. */
int outlet_take_back(struct outlet *o, uint32_t which, void *stream, struct shard_error *err);

#endif
