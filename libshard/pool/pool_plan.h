/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_plan.h - how large a pool must be, and what it is made of
 *
 * A pool's memory is slabs.  A slab has rows of a share of the dataset (order/share.h), laid out as a
 * batch of so many rows would be.  The order is settled without a plan: a pool of another size, or none,
 * delivers the same.
 */
#ifndef SHARD_POOL_POOL_PLAN_H
#define SHARD_POOL_POOL_PLAN_H

#include "libshard/load/layout.h"
#include "libshard/load/steps.h"
#include "libshard/order/share.h"

struct pool_plan { /* const once it is made */
	struct order_share share;
	struct layout slab;   /* of a slab */
	uint32_t slab_rows;
	uint32_t slab_count;  /* of the pool */
	uint64_t epoch_slabs; /* of an epoch; the last one may have fewer rows */
	bool is_held;	      /* the pool holds the whole dataset, as epoch_slabs slabs */
	uint64_t ample_bytes; /* in place: with so much there is always room for another batch */
};

/*
 * For batches of `steps`, laid out as `batch` says, of which o->device_slot_count can be lent.  ARGUMENT
 * if o->pool_bytes is too small, with the number of bytes that are needed.
 */
int pool_plan(struct pool_plan *out, const struct shard_loader_options *o, const struct layout *batch,
	      const struct steps *steps, struct shard_error *err);

/* The slab where a row of the share is, counted from the epoch's first one. */
static inline uint64_t pool_plan_slab(const struct pool_plan *p, uint64_t row)
{
	return row / p->slab_rows;
}

/* The first slab that has no row below this one. */
static inline uint64_t pool_plan_slab_end(const struct pool_plan *p, uint64_t row)
{
	return row / p->slab_rows + (row % p->slab_rows != 0);
}

#endif
