/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - a part of the dataset in the memory of a GPU, or all of it, where batches are put together
 *
 * The pool's memory is slabs: rows of order/share.h, as a batch of so many would lie.  A loader of its own, the feed, fills
 * them, run after run; they are its device slots, lent for as long as a window that they are part of lasts.  Each batch is
 * gathered from them by a kernel, in the order that the loader without a pool has.  A pool that holds all of the
 * dataset is never given back, and once it is full nothing crosses the link.
 */
#ifndef LIBSHARD_LOAD_POOL_H
#define LIBSHARD_LOAD_POOL_H

#include "libshard/cuda/gather.h"
#include "libshard/load/device.h"
#include "libshard/order/share.h"

/* The order of one epoch, made when it is first asked. */
struct pool_order {
	struct order order;
	uint16_t *table;
	uint64_t epoch;
	bool made;
};

struct pool {
	struct shard_loader *feed;
	struct order_share share;
	uint32_t slab_rows, slab_count;
	uint64_t epoch_slabs; /* in an epoch, or in all: the last one may have fewer rows */
	bool is_held;	      /* slab_count is that */

	/* of the consumer */
	struct place claim; /* what is gathered next */
	bool is_started;    /* fetching is under way, from: */
	uint64_t origin_epoch, origin_slab;
	uint64_t first, end, limit;   /* slabs since the origin: [first, end) are lent; those below limit are needed no more */
	struct shard_batch *slab;     /* [slab_count] slab n, as lent, at n % slab_count */
	struct pool_order order[2];   /* of epochs, even and odd */
	uint32_t *home;		      /* is_held: [runs] where the n-th run from held_phase on is in the row of them */
	uint64_t held_phase;
	struct cuda_gather gather;
	struct gather_call call;
};

/* With the options that are settled: how large slabs are, how many, and the feed.  ARGUMENT if it is too small. */
int pool_open(struct shard_loader *l, struct shard_error *err);
void pool_close(struct shard_loader *l);
/* Another order; waits for what is gathered.  The loader then moves. */
int pool_adopt(struct shard_loader *l, const struct order_params *params, struct shard_error *err);
void pool_move(struct shard_loader *l, struct place to);

int pool_wait(struct shard_loader *l, uint64_t timeout_ns, struct shard_error *err); /* shard_loader_wait() */

/* ---- for device.c, which has entered ---- */

int pool_await(struct shard_loader *l, struct device_side *d, struct shard_error *err); /* the rows of the claim are on their way */
bool pool_has(struct shard_loader *l, struct device_side *d); /* that without a wait; what goes wrong is in d->failed */
int pool_send(struct shard_loader *l, struct device_side *d, struct device_slot *to, struct shard_error *err); /* gather it */
void pool_close_device(struct shard_loader *l, bool inherited);

#endif
