/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_gather.h - the rows of a batch: gathered out of slabs by a kernel, or left there
 *
 * In place, rows of large groups stay in the pool, and the batch says where; only small groups are
 * gathered.
 */
#ifndef SHARD_POOL_POOL_GATHER_H
#define SHARD_POOL_POOL_GATHER_H

#include <stdbool.h>

#include "libshard/cuda/gather.h"

struct layout;
struct order;
struct outlet_slot;
struct pool_plan;
struct slabs;
struct steps;

struct pool_gather {
	const struct pool_plan *plan; /* const after open, as: */
	const struct layout *batch;
	const struct slabs *slabs;
	uint32_t batch_records;
	uint64_t *row_at; /* in place: [slot of the outlet][group][batch_records], bytes into the pool; else NULL */
	/* A pool of everything: where the n-th run from home_phase on is in the row of runs.  Else NULL. */
	uint32_t *home;
	uint64_t home_phase;
	struct cuda_gather kernel; /* `module` NULL: it is not loaded yet */
	struct gather_call call;
};

/* Arithmetic and memory.  pool_gather_close() is due either way. */
int pool_gather_open(struct pool_gather *g, const struct pool_plan *plan, const struct layout *batch,
		     const struct slabs *slabs, uint32_t batch_records, uint32_t batch_count, struct shard_error *err);
/* Entered, unless inherited by a child: the kernel is not under way. */
void pool_gather_close(struct pool_gather *g, bool inherited);

/* Load the kernel, if it is not loaded.  Entered. */
int pool_gather_begin(struct pool_gather *g, struct shard_error *err);
/* A pool of everything: where its runs are, if they are fetched in this order. */
void pool_gather_find_homes(struct pool_gather *g, const struct order *o);

/*
 * Queue the kernel for a slot whose place and records are known.  Its records and flags become those of
 * the slabs, where damaged records were repaired.  Entered.
 */
int pool_gather_launch(struct pool_gather *g, const struct steps *steps, const struct order *o, struct outlet_slot *to,
		       struct shard_error *err);

/* In place: say where the large groups of a batch are. */
void pool_gather_describe(const struct pool_gather *g, uint32_t which, struct shard_batch *out);

#endif
