/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_plan.h - how large a pool must be, and what it is made of
 *
 * The memory of a pool is made of slabs.  A slab holds rows of a share of the dataset, see
 * order/share.h, laid out like a batch.  The plan does not change the order: a pool of any size, or
 * none, delivers the same batches.
 */
#ifndef SHARD_POOL_POOL_PLAN_H
#define SHARD_POOL_POOL_PLAN_H

#include "libshard/feed/layout.h"
#include "libshard/feed/steps.h"
#include "libshard/order/share.h"

struct pool_plan {
	struct order_share share;
	struct layout slab;
	uint32_t slab_rows;
	uint32_t slab_count;  /* of the pool */
	uint64_t epoch_slabs; /* of an epoch; the last one may have fewer rows */
	bool is_held;	      /* the pool holds the whole dataset, in epoch_slabs slabs */
};

/*
 * Plan a pool for batches of these steps and this layout.  Fails with ARGUMENT if o->pool_bytes is
 * too small, and tells how many bytes are needed.
 */
int pool_plan(struct pool_plan *out, const struct shard_loader_options *o, const struct layout *batch,
	      const struct steps *steps, struct shard_error *err);

/* The slab of a row, counted from the first slab of the epoch. */
static inline uint64_t pool_plan_slab(const struct pool_plan *p, uint64_t row)
{
	return row / p->slab_rows;
}

/* The end of the slabs that hold the rows below this one. */
static inline uint64_t pool_plan_slab_end(const struct pool_plan *p, uint64_t row)
{
	return row / p->slab_rows + (row % p->slab_rows != 0);
}

#endif
