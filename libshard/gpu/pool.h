/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - a pool holds a part of the dataset, or all of it, in the memory of a GPU
 *
 * A feed of runs fills the pool, slab after slab.  A kernel gathers each batch from slabs, in the
 * order that a loader without a pool has.  A slab stays until no window needs it any more.
 *
 * A pool that holds the whole dataset keeps all slabs: once it is full, nothing is copied to the GPU
 * any more.
 *
 * Only the consumer calls these functions.
 */
#ifndef SHARD_POOL_POOL_H
#define SHARD_POOL_POOL_H

#include "libshard/gpu/pool_gather.h"
#include "libshard/gpu/slabs.h"

/* The order of one epoch, made when it is first needed. */
struct pool_order {
	struct order order;
	uint16_t *table;
	uint64_t epoch;
	bool made;
};

struct pool {
	struct shard_dataset *ds;      /* const after open, as: */
	struct shard_loader_options o; /* with defaults filled in */
	const struct layout *layout;   /* of batches */
	struct pool_plan plan;
	struct steps steps;	      /* of batches */
	struct device_slots *batches; /* batches are put together there; it may be opened later */

	struct slabs slabs;
	struct pool_gather gather;
	struct place claim;	    /* what is put together next */
	bool is_started;	    /* fetching is under way for the claim */
	struct pool_order order[2]; /* of epochs, even and odd */
};

/* Prepare arithmetic only.  Fails with ARGUMENT if o->pool_bytes is too small. */
int pool_open(struct pool **out, struct shard_dataset *ds, const struct shard_loader_options *o,
	      const struct layout *layout, const struct steps *steps, struct device_slots *batches,
	      struct shard_error *err);
/* Kernels have finished.  A forked child, with `inherited`, only frees memory. */
void pool_close(struct pool *p, bool inherited);

/* Go on at `to`.  Does not wait. */
void pool_move(struct pool *p, struct place to);
/*
 * Replace *p by a pool for another order.  Waits for kernels.  Call pool_move() next.  After an
 * error *p is as before.
 */
int pool_adopt(struct pool **p, const struct order_params *params, struct shard_error *err);

/* ---- batches; the context is entered, except for pool_wait() ---- */

/* Allocate memory and start the feed, as the first pool_next() does before it waits. */
int pool_begin(struct pool *p, struct shard_error *err);
/*
 * Make sure that the device slots have a batch in their queue.  Waits for the feed if needed.
 */
int pool_next(struct pool *p, struct shard_error *err);
/*
 * Put together further batches, as far as this is possible without waiting.  If that fails,
 * pool_next() tries again.
 */
void pool_send_ahead(struct pool *p);
/*
 * Wait until pool_next() need not wait.  The queue of the device slots is empty.  Fails with
 * TIMEOUT.
 */
int pool_wait(struct pool *p, uint64_t timeout_ns, struct shard_error *err);

#endif
