/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the part of a loader that knows of a GPU: page-locks on the ring, slots in device memory, who waits for whom
 *
 * Belongs to the consumer, but for what says otherwise.  A batch goes host slot -> copy on our own stream -> device slot.
 * Three kinds of waiting, none of them by the host: the trainer's stream waits for `ready`, the copy for `done`, and a
 * second stream of ours for `ready` too, where a thread of the driver then gives the host slot back to the crew.
 */
#ifndef LIBSHARD_LOAD_DEVICE_H
#define LIBSHARD_LOAD_DEVICE_H

#include "libshard/cuda/device.h"
#include "libshard/load/loader.h"

#define DEVICE_SLOTS_DEFAULT 3u
#define DEVICE_SLOTS_MIN 2u
#define DEVICE_SLOTS_MAX 4u
#define DEVICE_BATCH	 0x80000000u /* in shard_batch.slot, with the number of a device slot */

/* ---- pin.c: page-locks ---- */

enum pin_state { PIN_PENDING, PINNED, NOT_PINNED };

struct pins {
	struct shard_loader *l;
	const struct cuda_device *cuda;
	uint64_t chunk_bytes; /* const: of a slot, page-locked at once; no copy may cross the end of one */
	pthread_t thread;
	bool has_thread, has_lock;
	pthread_mutex_t lock;
	pthread_cond_t change;	 /* with lock: the state of a slot */
	enum pin_state *state;	 /* [slot_count] lock */
	uint64_t bytes;		 /* lock: page-locked by us, or found so */
	bool late;		 /* lock: the system takes too long, and nobody waits for it any more */
	struct shard_error why;	 /* lock: of the first that was refused; status 0: none */
};

/*
 * Page-lock the slots of our own ring, one after the other, by a thread of its own; of a ring that was lent, see whether
 * its owner has done so.  What is refused is no error: it is told by `why`.
 */
int pins_open(struct pins *p, struct shard_loader *l, const struct cuda_device *cuda, struct shard_error *err);
void pins_close(struct pins *p, bool inherited); /* entered; nothing copies from the ring any more */
bool pins_knows(struct pins *p, uint32_t slot);	 /* whether that is page-locked or not */
bool pins_has(struct pins *p, uint32_t slot);	 /* it is; waits until it is known, within reason */
uint64_t pins_bytes(struct shard_loader *l);	 /* page-locked so far */

/* ---- device.c ---- */

struct device_slot {
	struct slot as; /* of the host's slot what outlives it: memory is the device's address, record and row_flags its own */
	void *ready;	/* event: the copy is done */
	void *done;	/* event: the trainer is done with it; if it was ever lent: */
	bool has_done, queued, lent;

	/* with a pool: */
	bool awaited;		/* the copy stream is behind `done` */
	uint64_t slab, slab_end; /* in place, while it is queued or lent: where its rows are */
	uint64_t *row_at;	/* in place: [group][batch_records] of large groups.  Else NULL */
};

struct give {
	struct shard_loader *l;
	uint32_t slot;
};

struct device_side {
	struct cuda_device *cuda;
	void *copy, *back; /* streams: copies, or with a pool its kernels; and giving host slots back behind them */
	struct pins pins;
	struct give *give; /* [slot_count] */
	void **host_done;  /* [slot_count] events: the trainer is done with a host slot */

	struct device_slot *slot; /* [slot_count] */
	uint64_t memory;	  /* of all slots */
	uint32_t slot_count;	  /* 0: none were made, as only host batches were asked for */
	uint32_t lent_count, next_slot;
	uint32_t *queue, queue_count; /* [slot_count] copied ahead, in the order of delivery */
	int failed;				       /* what came of copying further ahead */
	struct shard_error why;
};

/* The device side, opened if need be, which `stream` belongs to. */
int device_get(struct shard_loader *l, void *stream, struct shard_error *err);
int device_open_slots(struct shard_loader *l, struct shard_error *err); /* entered: memory for batches, if there is none yet */
void device_send_ahead(struct shard_loader *l); /* entered: what is ready, as far as there is room */
int device_finish(struct shard_loader *l, struct shard_error *err); /* wait for its copies, or kernels, and with a pool for who reads it */

/* Wait until crew_take() need not wait for long, with an eye on the driver: if that fails, nobody gives slots back. */
int device_await(struct shard_loader *l, struct shard_error *err);
bool device_answers(const struct shard_loader *l); /* next_device need not wait for the crew: what is next was sent, or none can be */
void device_forget(struct shard_loader *l); /* what was copied ahead is not wanted any more; waits for nothing */
void device_close(struct shard_loader *l, bool inherited);

#endif
