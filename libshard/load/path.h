/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - by which way the records of a shard come: from its map, past the page cache, or by pread
 *
 * A thread that first needs a shard in an epoch decides.  Any thread may, as all would decide the
 * same.  A mapped shard is hot if it lies in memory.  It stays hot until a step has to wait for its
 * pages; then all hot shards are looked at again.  Of mapped shards that are not hot, whole runs are
 * asked for before the first of their records is used.
 */
#ifndef SHARD_LOAD_PATH_H
#define SHARD_LOAD_PATH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "shard.h"

#define PATH_RUN_BYTES (UINT64_C(256) << 10) /* neighbours that are worth one request to the disk */

enum path_kind { PATH_MAP = 0, PATH_DIRECT = 1, PATH_PREAD = 2 };

struct path_choice {
	enum path_kind kind;
	bool hot; /* PATH_MAP: it lies in memory */
};

struct paths {
	const struct shard_schema *schema;
	uint64_t shard_count;
	uint32_t asked;	 /* enum shard_path; const, as all but: */
	bool is_remote, fits, wants_direct, has_direct_group;
	uint64_t fetch_records; /* of a run that is asked for */
	_Atomic uint32_t turn;	/* goes up when hot shards are doubted */
	_Atomic uint32_t *entry; /* [shard_count] a decision, and when it was made; 0: never */
	/* [shard_count] of each group, the epoch in which a run was asked for last; NULL: none was yet */
	_Atomic(_Atomic uint8_t *) *fetched;
};

/* False: no memory.  paths_close() is due either way. */
bool paths_open(struct paths *p, struct shard_dataset *ds, uint32_t asked);
void paths_close(struct paths *p);

/* A dataset of at most so many bytes is read through the page cache, to lie in memory from then on. */
uint64_t path_fits_bytes(void);

/*
 * When decisions were made that hold in an epoch.  Those for the next epoch hold as well, since
 * another thread may be in it already.
 */
struct path_times {
	uint32_t hot, now, next;
};
struct path_times paths_times(const struct paths *p, uint64_t epoch);

/* What was decided for a shard.  False: nothing, or it does not hold any more. */
static inline bool paths_find(const struct paths *p, const struct path_times *times, uint64_t shard, struct path_choice *out)
{
	uint32_t entry = atomic_load_explicit(&p->entry[shard], memory_order_acquire), time = entry >> 3;

	out->kind = (enum path_kind)(entry & 3);
	out->hot = entry & 4;
	return out->hot ? time == times->hot : time == times->now || time == times->next;
}

struct path_choice paths_decide(struct paths *p, uint64_t shard, const struct shard_reader *r, uint64_t epoch);

/* A step with so many rows of hot shards had so many page faults: doubt them if those are too many. */
void paths_doubt(struct paths *p, uint64_t faults, uint32_t hot_rows);

/* The file system turned out to take no direct reads of this shard. */
void paths_refuse_direct(struct paths *p, uint64_t shard, uint64_t epoch);

/* PATH_MAP, not hot: have the run around a record fetched, once in an epoch. */
void paths_fetch_run(struct paths *p, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside,
		     uint64_t epoch);

#endif
