/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_side.h - copies the slots of a feed to an outlet, ahead of the consumer
 *
 * A batch is copied by one copy for each group, on the outlet's stream.  As many are queued as there are
 * slots of the outlet to be had and slots of the feed ready, so the batches behind the one that is lent
 * are on their way while the trainer works.  The host does not wait for copies: a second stream of ours
 * waits for each, and a thread of the driver then gives the host slot back to the feed.  The host waits
 * where the feed has no batch ready, and where all its slots are still being copied.
 *
 * A device side belongs to the consumer.  Calls stand between cuda_enter() and cuda_leave(), but for
 * those that say otherwise.
 */
#ifndef SHARD_GPU_DEVICE_SIDE_H
#define SHARD_GPU_DEVICE_SIDE_H

#include "libshard/gpu/outlet.h"
#include "libshard/gpu/pins.h"

struct feed;

/* A host slot, for the thread of the driver that gives it back. */
struct give {
	struct feed *feed;
	uint32_t slot;
};

struct device_side {
	struct feed *feed;	/* const after open, as: */
	struct outlet *outlet;	/* where it copies to; may be opened later */
	const struct cuda_device *cuda;
	void *back;		/* stream: giving host slots back */
	struct give *give;	/* [slot_count] of the feed */
	void **host_done;	/* [slot_count] events: the trainer is done with a host slot */
	struct pins pins;
	uint64_t copied_bytes, pageable_bytes;
};

/* The feed has started. */
int device_side_open(struct device_side **out, struct feed *feed, struct outlet *outlet, const struct cuda_device *cuda,
		     struct shard_error *err);
/* Nothing is on its way to the outlet any more.  In a child, `inherited` and not entered, it frees memory only. */
void device_side_close(struct device_side *d, bool inherited);

/* The batch at the head of the outlet's queue is on its way.  An error repeats until the feed is moved. */
int device_side_next(struct device_side *d, struct shard_error *err);
/* So is what the feed has ready, as far as the outlet has room.  An error is told when its turn comes. */
void device_side_send_ahead(struct device_side *d);

/*
 * Wait until feed_next() need not wait for long.  DEVICE if the driver has failed, for then no slot comes
 * back.  Need not be entered.
 */
int device_side_await(struct device_side *d, struct shard_error *err);

/* Give a host slot back to the feed behind what is queued on `stream`. */
int device_side_give_after(struct device_side *d, uint32_t host, void *stream, struct shard_error *err);

/* Sets what it counts.  Need not be entered. */
void device_side_stats(struct device_side *d, struct shard_loader_stats *out);

#endif
