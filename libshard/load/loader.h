/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - a loader's parts
 */
#ifndef SHARD_LOAD_LOADER_H
#define SHARD_LOAD_LOADER_H

#include "libshard/load/feed.h"

struct shard_loader {
	struct shard_dataset *ds;
	struct shard_loader_options asked, o; /* const after open: as given, and with defaults filled in */
	struct steps steps;
	struct layout layout;
	struct cursor cursor;
	struct feed *feed; /* const after open; NULL: with a pool */
	struct device_side *device; /* device.h; NULL: no GPU was asked for */
	struct pool *pool; /* pool.h; const after open; NULL: no pool was asked for */
	uint64_t start_ns;
	struct shard_loader_stats stats; /* what the consumer counts */
};

int loader_open_feed(struct shard_loader *l, struct shard_error *err);
int loader_begin(struct shard_loader *l, struct shard_error *err); /* what each next begins with: start, or why not to go on */
bool loader_ends_epoch(struct shard_loader *l); /* then the next call begins the next one */
int loader_take(struct shard_loader *l, uint32_t *slot, struct shard_error *err); /* the host slot that is next, once it is filled */
void loader_count(struct shard_loader *l, const struct shard_batch *batch); /* it is the caller's; the next one is behind it */

#endif
