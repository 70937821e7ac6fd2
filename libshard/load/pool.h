/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - a part of the dataset in the memory of a GPU, or all of it, where batches are put together
 *
 * The pool's memory is slabs: rows of order/share.h, as a batch of so many would lie.  A loader of its own, the feed, fills
 * them, run after run; they are its device slots, lent for as long as a window that they are part of lasts.  Each batch is
 * gathered from them by a kernel, in the order that the loader without a pool has; or, in place, only its small groups are,
 * and slabs stay lent until the batches that lie in them were given back.  A pool that holds all of the dataset is never
 * given back, and once it is full nothing crosses the link.
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

/* A slab that is lent, and which one it is. */
struct pool_slab {
	uint64_t number;
	uint32_t slot; /* of the feed's */
};

struct pool {
	struct shard_loader *feed;
	struct order_share share;
	uint32_t slab_rows, slab_count;
	uint64_t epoch_slabs; /* in an epoch, or in all: the last one may have fewer rows */
	bool is_held;	      /* slab_count is that */
	uint64_t ample_bytes; /* in place: room for as many batches as can be lent, wherever they stand */

	/* of the consumer; slabs are numbered as they come, since the first one ever */
	struct place claim; /* what is put together next */
	bool is_started;    /* fetching is under way, from: */
	uint64_t origin_epoch, origin_slab, origin; /* slab of that epoch, which is number `origin` */
	uint64_t first, end, limit;   /* [first, end) are lent; no batch to come needs those below limit */
	struct shard_batch *slab;     /* [slab_count] as lent, by the feed's slot */
	uint32_t *slot;		      /* [slab_count] of slab n, at n % slab_count */
	struct pool_slab *late;	      /* [slab_count] below first, and lent: batches that were not given back lie in them */
	uint32_t late_count;
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

/* The rows of the claim are on their way.  *is_full: they cannot be before a batch is given back; the error says so. */
int pool_await(struct shard_loader *l, struct device_side *d, bool *is_full, struct shard_error *err);
bool pool_has(struct shard_loader *l, struct device_side *d); /* that without a wait; what goes wrong is in d->failed */
int pool_send(struct shard_loader *l, struct device_side *d, struct device_slot *to, struct shard_error *err);
void pool_describe(const struct shard_loader *l, const struct device_slot *s, struct shard_batch *out); /* in place: where large groups are */
void pool_close_device(struct shard_loader *l, bool inherited);

/* ---- pool_rows.c: the rows of a batch, out of slabs ---- */

void pool_list_pieces(struct shard_loader *l); /* what the kernel is told of all batches */
uint64_t pool_slabs_until(const struct pool *p, uint64_t epoch, uint64_t slab); /* its number */
/* Queue the kernel, for a slot whose place and records are known; what became of records when they were read comes in, too. */
int pool_gather(struct shard_loader *l, struct device_side *d, const struct order *o, struct device_slot *to, struct shard_error *err);
/* In place: does a batch lie in a slab that is queued, or lent? */
bool pool_is_read(const struct device_side *d, uint64_t slab);

#endif
