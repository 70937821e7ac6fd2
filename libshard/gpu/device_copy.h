/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_copy.h - copies the slots of a feed to device slots, ahead of the consumer
 *
 * It queues one copy for each group of a batch, on the stream of the device slots.  It does so for
 * as many batches as the feed has ready and as there are free slots.  So the next batches are on
 * their way while the trainer works on the one that it has.
 *
 * The host does not wait for copies.  A second stream waits for each copy, and then a thread of the
 * driver gives the host slot back to the feed.  The host only waits while the feed has no batch
 * ready, or while all slots of the feed are being copied.
 *
 * Only the consumer calls these functions.  It has entered the context, except where a function
 * says that this is not needed.
 */
#ifndef SHARD_GPU_DEVICE_COPY_H
#define SHARD_GPU_DEVICE_COPY_H

#include "libshard/gpu/device_slots.h"
#include "libshard/gpu/pins.h"

struct feed;

/* A host slot that a thread of the driver gives back. */
struct give {
	struct feed *feed;
	uint32_t slot;
};

struct device_copy {
	struct feed *feed; /* const after open, as: */
	struct device_slots *device_slots;
	const struct cuda_device *cuda;
	void *back;	   /* the stream that gives host slots back */
	struct give *give; /* [slot_count of the feed] */
	void **host_done;  /* [slot_count of the feed] events: the trainer is done with a slot */
	struct pins pins;
	uint64_t copied_bytes, pageable_bytes;
};

/* The feed has started.  The device slots may be opened later. */
int device_copy_open(struct device_copy **out, struct feed *feed, struct device_slots *device_slots,
		     const struct cuda_device *cuda, struct shard_error *err);
/*
 * Copies have finished.  A forked child calls this too, with `inherited`, without entering the
 * context.  Then it only frees memory.
 */
void device_copy_close(struct device_copy *d, bool inherited);

/*
 * Make sure that the device slots have a batch in their queue.  Waits for the feed if needed.  An
 * error repeats until feed_move().
 */
int device_copy_next(struct device_copy *d, struct shard_error *err);
/*
 * Queue the copies of all batches that are ready, as far as there are free device slots.  If that
 * fails, device_copy_next() reports the error behind the batches that are in the queue.
 */
void device_copy_send_ahead(struct device_copy *d);

/*
 * Fails with DEVICE if the driver has failed, because then it gives no slot back.  A thread that
 * waits for one calls this from time to time.  The context need not be entered.
 */
#define DEVICE_COPY_WATCH_NS UINT64_C(1000000000)
int device_copy_check(const struct device_copy *d, struct shard_error *err);

/* Wait until feed_next() need not wait, and watch the driver meanwhile. */
int device_copy_await(struct device_copy *d, struct shard_error *err);

/* Give a host slot back to the feed behind the work that is queued on `stream`. */
int device_copy_give_after(struct device_copy *d, uint32_t host, void *stream, struct shard_error *err);

/* Set the counters of the copies.  The context need not be entered. */
void device_copy_stats(struct device_copy *d, struct shard_loader_stats *out);

#endif
