/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - the face: what stands behind the public calls of a loader
 *
 * Without a GPU batches are the slots of a feed.  On a GPU they are the slots of an outlet, which a
 * device side fills from the feed, or a pool from a feed of its own.  Ends of epochs, seek and resume are
 * the face's: what is below goes on for ever.
 *
 * All of it belongs to the consumer, the thread that calls next.
 */
#ifndef SHARD_LOADER_LOADER_H
#define SHARD_LOADER_LOADER_H

#include "libshard/gpu/outlet.h"
#include "libshard/load/feed.h"

struct device_side;
struct pool;

struct shard_loader {
	struct shard_dataset *ds;		 /* const after open, as: */
	struct shard_loader_options asked, o; /* as given, and with defaults filled in */
	struct layout layout;			 /* of batches */
	struct feed *feed;			 /* NULL: the pool has a feed */
	struct pool *pool; /* NULL: no pool was asked for; another one after a token of another order */

	struct steps steps;
	struct cursor cursor; /* the batch that next delivers */
	uint64_t start_ns;
	uint64_t batch_count, record_count, bytes; /* that next has delivered */

	/* Once a GPU was asked for. */
	struct cuda_device *cuda; /* NULL: it was not yet */
	struct outlet outlet;	  /* not open: only host batches were asked for */
	struct device_side *side; /* fills the outlet; NULL: with a pool */
};

/* What fills slots of the host, and copies them to a GPU; the latter NULL if nothing does yet. */
struct feed *loader_feed(const struct shard_loader *l);
struct device_side *loader_side(const struct shard_loader *l);

/* Start, if it has not started.  ARGUMENT in another process than the first time. */
int loader_start(struct shard_loader *l, struct shard_error *err);
/* What a call of next begins with: the same, or the error that it stopped with. */
int loader_begin(struct shard_loader *l, struct shard_error *err);
bool loader_ends_epoch(struct shard_loader *l); /* if so, the next call begins the next epoch */
void loader_count(struct shard_loader *l, const struct shard_batch *batch); /* it is the caller's now */

/* The GPU that `stream` is on, opened if need be.  ARGUMENT if it is another one than before. */
int loader_open_device(struct shard_loader *l, void *stream, struct shard_error *err);

#endif
