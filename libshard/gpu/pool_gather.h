/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_gather.h - a kernel gathers the rows of a batch from slabs
 */
#ifndef SHARD_POOL_POOL_GATHER_H
#define SHARD_POOL_POOL_GATHER_H

#include <stdbool.h>

#include "libshard/gpu/gather.h"

struct layout;
struct order;
struct device_slot;
struct pool_plan;
struct slabs;
struct steps;

struct pool_gather {
	const struct pool_plan *plan; /* const after open, as: */
	const struct layout *batch;
	const struct slabs *slabs;
	/* [run] the place of a run, counted from home_phase on; NULL: the pool holds a part only */
	uint32_t *home;
	uint64_t home_phase;
	struct cuda_gather kernel; /* its module is NULL until it is loaded */
	struct gather_call call;
};

/* Call pool_gather_close() even if this fails. */
int pool_gather_open(struct pool_gather *g, const struct pool_plan *plan, const struct layout *batch,
		     const struct slabs *slabs, struct shard_error *err);
/* The kernel has finished.  The context is entered, except in a forked child, with `inherited`. */
void pool_gather_close(struct pool_gather *g, bool inherited);

/* Load the kernel, unless that was done.  The context is entered. */
int pool_gather_begin(struct pool_gather *g, struct shard_error *err);
/* Note where runs will be in a pool that holds everything, if they are fetched in this order. */
void pool_gather_find_homes(struct pool_gather *g, const struct order *o);

/*
 * Queue the kernel for a slot whose place and records are filled in.  If damaged records were
 * repaired in a slab, the slot takes over their records and flags.  The context is entered.
 */
int pool_gather_launch(struct pool_gather *g, const struct steps *steps, const struct order *o, struct device_slot *to,
		       struct shard_error *err);

#endif
