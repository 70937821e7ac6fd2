/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - the path of a shard's records: from its map, past the page cache, or by pread
 *
 * The first thread that needs a shard in an epoch decides the path.  It does not matter which
 * thread that is, because all would decide the same.
 *
 * A mapped shard is hot if it lies in memory.  It stays hot until a step has to wait for pages.  A
 * long one is examined again in each epoch, too.  What a mapped shard that is not hot lacks is
 * fetched by dataset/fetch.h.
 *
 * With SHARD_CHECK_DEVICE this file also makes readers forget their checks: before it fetches a
 * small group, and if a part of the shard is not in memory.
 */
#ifndef SHARD_FEED_PATH_H
#define SHARD_FEED_PATH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "shard.h"
#include "shard_pack.h"

struct fetch; /* dataset/fetch.h */
struct layout;

enum path_kind { PATH_MAP = 0, PATH_DIRECT = 1, PATH_PREAD = 2 };

struct path_choice {
	enum path_kind kind;
	bool hot; /* PATH_MAP: the shard lies in memory */
};

struct paths {
	const struct layouts *layouts; /* const after open, as: */
	uint64_t shard_count;
	uint32_t asked; /* enum shard_path */
	bool is_remote, fits, wants_direct, has_direct_group;

	struct fetch *fetch;
	_Atomic uint32_t turn;	 /* goes up by 2 when hot shards are doubted */
	_Atomic uint32_t *entry; /* [shard_count] a decision and its time; 0: there was none yet */
};

/* Returns false if there is no memory.  Call paths_close() in either case. */
bool paths_open(struct paths *p, struct shard_dataset *ds, const struct layouts *layouts, uint32_t asked);
void paths_close(struct paths *p, bool inherited); /* inherited: the caller is a forked child */

/* A dataset of at most so many bytes is read through the page cache, and stays there. */
uint64_t path_fits_bytes(void);

/*
 * The times of decisions that hold in an epoch.  A decision for the next epoch holds as well, as
 * another thread may be there already.
 */
struct path_times {
	uint32_t lasting, now, next; /* lasting: of short shards that are hot */
};
struct path_times paths_times(const struct paths *p, uint64_t epoch);

/* Look up the decision for a shard.  Returns false if there is none that holds. */
static inline bool paths_find(const struct paths *p, const struct path_times *times, uint64_t shard,
			      struct path_choice *out)
{
	uint32_t entry = atomic_load_explicit(&p->entry[shard], memory_order_acquire), time = entry >> 3;

	out->kind = (enum path_kind)(entry & 3);
	out->hot = entry & 4;
	return time == times->now || time == times->next || time == times->lasting;
}

/* Decide, for this epoch. */
struct path_choice paths_decide(struct paths *p, uint64_t shard, struct shard_reader *r, uint64_t epoch);

/*
 * A step with so many rows of hot shards had this many page faults.  Doubt hot shards if too many.
 */
void paths_doubt(struct paths *p, uint64_t faults, uint32_t hot_rows);

/* The file system turned out to take no direct reads of this shard. */
void paths_refuse_direct(struct paths *p, uint64_t shard, uint64_t epoch);

/*
 * For a mapped shard that is not hot: fetch_begin() and fetch_await().  Small groups beside large
 * ones are fetched as a whole when the path is decided.
 */
bool paths_fetch(struct paths *p, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside,
		 uint64_t epoch);
uint64_t paths_await(struct paths *p, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside,
		     uint64_t epoch);

#endif
