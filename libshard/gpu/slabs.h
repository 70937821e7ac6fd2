/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slabs.h - the slabs of a pool: they are fetched from a feed of runs, and given back
 *
 * A slab is a device slot that the pool owns, and that device_copy.h fills.  It stays lent until no
 * window needs it any more.  Slabs are numbered as they come, from the first one ever.
 *
 * One stream keeps everything in order, that of the batches.  It waits for slabs, puts batches
 * together, and then gives slabs back.  The host waits only for a slab that the feed has not filled
 * yet.
 */
#ifndef SHARD_POOL_SLABS_H
#define SHARD_POOL_SLABS_H

#include "libshard/gpu/device_slots.h"
#include "libshard/gpu/pool_plan.h"

struct device_copy;
struct feed;

struct slabs {
	const struct pool_plan *plan; /* const after open, as: */
	struct device_slots *batches; /* batches are put together there */
	struct feed *feed;
	struct device_slots device_slots; /* the memory of the pool */
	struct device_copy *copy;	  /* NULL: nothing was fetched yet */

	/* Slab `origin_slab` of `origin_epoch` has the number `origin`.  The others follow it. */
	uint64_t origin_epoch, origin_slab, origin;
	uint64_t first, end; /* slabs [first, end) are lent */
	uint64_t limit;	     /* no later batch needs slabs below this number */
	uint32_t *slot;	     /* [slab_count] the slot of slab n is at n % slab_count */
};

/* The feed belongs to the slabs now, even if this fails. */
int slabs_open(struct slabs *s, const struct pool_plan *plan, struct feed *feed, struct device_slots *batches,
	       struct shard_error *err);
/* Kernels have finished.  The context is entered, except in a forked child, with `inherited`. */
void slabs_close(struct slabs *s, bool inherited);

/* ---- back and forth; the context is entered ---- */

/* Give all slabs back, and go on with this one. */
int slabs_start(struct slabs *s, uint64_t epoch, uint64_t slab, struct shard_error *err);
/* If the feed has failed, make it try the next slab again. */
void slabs_retry(struct slabs *s);
/* Allocate memory and start the feed, unless that was done. */
int slabs_begin(struct slabs *s, struct shard_error *err);
/* Fetch the next slab.  The stream of the batches waits until it is there. */
int slabs_fetch(struct slabs *s, struct shard_error *err);
/* Is the next slab on its way already, so that slabs_fetch() does not wait? */
bool slabs_has_next(const struct slabs *s);
/* Give back slabs below `limit`, behind the work that reads them. */
int slabs_give_back(struct slabs *s, struct shard_error *err);

/* ---- arithmetic ---- */

/* The number of a slab of an epoch. */
uint64_t slabs_number(const struct slabs *s, uint64_t epoch, uint64_t slab);
/*
 * Find a row of the share, in this epoch.  Returns the device slot; *inside is the row
 * there.
 */
uint32_t slabs_find(const struct slabs *s, uint64_t epoch, uint64_t row, uint32_t *inside);

#endif
