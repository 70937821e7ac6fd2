/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slabs.h - which slabs are in a pool: fetched from a feed of runs in the order of its steps, given back
 *
 * Slabs are numbered as they come, since the first one ever.  They are slots of an outlet that a device
 * side copies to, and stay lent for as long as a window that they are part of lasts.  In place they
 * stay lent until the batches that lie in them were given back, too.
 *
 * Everything is in the order of one stream, that of the batches: slabs are awaited there, batches are put
 * together there, and slabs are given back behind that.  The host waits only for a slab that the feed has
 * not filled yet.
 */
#ifndef SHARD_POOL_SLABS_H
#define SHARD_POOL_SLABS_H

#include "libshard/pool/kept.h"
#include "libshard/pool/pool_plan.h"

struct device_side;
struct feed;

/* A slab that is lent, and which one it is. */
struct slab {
	uint64_t number;
	uint32_t slot; /* of the outlet */
};

struct slabs {
	const struct pool_plan *plan; /* const after open, as: */
	struct outlet *batches;	      /* those that are put together from slabs */
	bool in_place;		      /* batches lie in slabs */
	struct feed *feed;
	struct outlet outlet;	  /* the pool's memory */
	struct device_side *side; /* NULL: fetching has not begun */

	/* The row of slabs begins with `origin_slab` of that epoch, which is number `origin`. */
	uint64_t origin_epoch, origin_slab, origin;
	uint64_t first, end; /* [first, end) are lent */
	uint64_t limit;	     /* no batch to come needs those below */
	uint32_t *slot;	     /* [slab_count] of the outlet: that of slab n is at n % slab_count */
	struct slab *late;   /* [slab_count] lent, below `first`: batches lie in them that are not given back */
	uint32_t late_count;
	struct kept kept;    /* in place: those that batches lie in */
};

/* Takes over the feed. */
int slabs_open(struct slabs *s, const struct pool_plan *plan, struct feed *feed, struct outlet *batches, bool in_place,
	       struct shard_error *err);
/* Nothing reads slabs any more but what was queued on them.  Entered, unless inherited by a child. */
void slabs_close(struct slabs *s, bool inherited);

/* Calls below are entered. */

/* The row of slabs begins anew with this one.  Slabs that are there go back; a pool of everything has none. */
int slabs_start(struct slabs *s, uint64_t epoch, uint64_t slab, struct shard_error *err);
/* After an error: fetch the slab that comes next once more. */
void slabs_retry(struct slabs *s);
/* Memory of the host and the GPU, threads, reads.  Does nothing the second time. */
int slabs_begin(struct slabs *s, struct shard_error *err);
/* The next slab is on its way, and what is queued on the stream of the batches finds it there. */
int slabs_fetch(struct slabs *s, struct shard_error *err);
/* Is it on its way already? */
bool slabs_has_next(const struct slabs *s);
/* Slabs below `limit` go back, behind all that reads them, but for those that batches lie in. */
int slabs_give_back(struct slabs *s, struct shard_error *err);

/* ---- arithmetic ---- */

uint64_t slabs_number(const struct slabs *s, uint64_t epoch, uint64_t slab); /* of a slab of an epoch */
/* Have slabs up to this number room, beside those that cannot go back?  Always, unless in place. */
bool slabs_fit(const struct slabs *s, uint64_t needed);
/* The slot of the outlet where a row of the share is in this epoch, and the row within it. */
uint32_t slabs_find(const struct slabs *s, uint64_t epoch, uint64_t row, uint32_t *inside);

#endif
