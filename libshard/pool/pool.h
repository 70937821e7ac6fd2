/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - a part of the dataset in the memory of a GPU, or all of it, from which batches are put
 * together
 *
 * A feed of runs fills the pool, slab after slab.  A slab stays for as long as a window that it is part
 * of lasts.  A kernel gathers each batch from slabs, in the order that a loader without a pool has.  In
 * place, only small groups are gathered, and slabs also stay until the batches that lie in them were
 * given back.  A pool that holds all of the dataset is never given back; once it is full, nothing
 * crosses the link any more.
 *
 * A pool belongs to the consumer.
 */
#ifndef SHARD_POOL_POOL_H
#define SHARD_POOL_POOL_H

#include "libshard/pool/pool_gather.h"
#include "libshard/pool/slabs.h"

/* The order of one epoch, made when it is first needed. */
struct pool_order {
	struct order order;
	uint16_t *table;
	uint64_t epoch;
	bool made;
};

struct pool {
	struct shard_dataset *ds;      /* const after open, as: */
	struct shard_loader_options o; /* settled */
	const struct layout *layout;   /* of batches */
	struct pool_plan plan;
	struct steps steps;	/* of batches */
	struct outlet *batches; /* where they are put together; opened later */

	struct slabs slabs;
	struct pool_gather gather;
	struct place claim; /* what is put together next */
	bool is_started;    /* fetching is under way for the claim */
	struct pool_order order[2]; /* of epochs, even and odd */
};

/* Reads metadata only.  ARGUMENT if o->pool_bytes is too small. */
int pool_open(struct pool **out, struct shard_dataset *ds, const struct shard_loader_options *o,
	      const struct layout *layout, const struct steps *steps, struct outlet *batches, struct shard_error *err);
/* What gathers batches is finished.  By a child, `inherited`, it frees memory only. */
void pool_close(struct pool *p, bool inherited);

/* Put batches together from `to` on. */
void pool_move(struct pool *p, struct place to);
/* A pool for another order in place of *p; waits for what is gathered.  pool_move() has to follow. */
int pool_adopt(struct pool **p, const struct order_params *params, struct shard_error *err);

/* ---- batches; calls are entered but for pool_wait() ---- */

/* What the first pool_next() does before it waits: memory of the host and the GPU, threads, reads. */
int pool_begin(struct pool *p, struct shard_error *err);
/*
 * The batch at the head of the outlet's queue is on its way.  *is_full: it cannot be, before a batch is
 * given back; the error says so.
 */
int pool_next(struct pool *p, bool *is_full, struct shard_error *err);
/* Put together what can be without a wait.  What fails is tried again when its turn comes. */
void pool_send_ahead(struct pool *p);
/* Wait until pool_next() need not; TIMEOUT.  The outlet has room, and nothing in its queue. */
int pool_wait(struct pool *p, uint64_t timeout_ns, struct shard_error *err);

#endif
