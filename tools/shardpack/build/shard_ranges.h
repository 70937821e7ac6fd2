/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_ranges.h - which shards are there, range by range, found with few looks at a large folder
 *
 * Workers build the shards of a range in order.  So a look at its last shard tells whether it is
 * most likely complete.  It is complete when each of its shards was seen, or when a mark says so
 * that was made since we began: that of an earlier run may be older than the removal of a shard.
 * Who makes a mark looks at each shard first.
 */
#ifndef SHARD_BUILD_SHARD_RANGES_H
#define SHARD_BUILD_SHARD_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/shardpack/build/claim.h"
#include "tools/shardpack/build/shard_list.h"

struct shard_ranges { /* start it zeroed */
	const char *out_dir, *state_dir;
	uint64_t shards, count; /* of a range; of ranges */
	struct shard_list list;
	struct claim_files *files; /* [count] what there was before the list was made */
	uint64_t *next;		   /* [count] all before it in the range were seen */
	bool is_new;		   /* the list was made just now */
};

/* Both folders must live on.  Returns the exit code.  Close it all the same if this fails. */
int shard_ranges_open(struct shard_ranges *r, const char *out_dir, const char *state_dir, uint64_t shard_count);
void shard_ranges_close(struct shard_ranges *r);

/*
 * By the plan alone: how many shards a range has, the last one excepted; and which.  Set idx; false
 * behind the last range.
 */
struct shard_range {
	uint64_t idx, first, count;
};
uint64_t shard_ranges_shards(uint64_t shard_count);
bool shard_ranges_find(uint64_t shard_count, struct shard_range *r);

/* Are complete ranges marked?  It is not worth it if each is a single shard. */
bool shard_ranges_is_marked(const struct shard_ranges *r);

/* Is each of its shards there now?  Looks at all, also at those that were seen before. */
bool shard_ranges_is_there(const struct shard_ranges *r, uint64_t range);

/* The number behind that of the range's last shard. */
uint64_t shard_ranges_end(const struct shard_ranges *r, uint64_t range);

/* Was each of its shards seen?  Does not look at the folder. */
bool shard_ranges_is_complete(struct shard_ranges *r, uint64_t range);

/* Is the shard there?  Looks at the folder if it was not seen before.  `see` marks it as seen. */
bool shard_ranges_has(struct shard_ranges *r, uint64_t shard_idx);
void shard_ranges_see(struct shard_ranges *r, uint64_t shard_idx);

/* Does a look find the last shard for the first time?  An old one says nothing of the others. */
bool shard_ranges_has_come(struct shard_ranges *r, uint64_t range);

/*
 * Is it complete now?  Looks at its last shard, and if that is there, at the mark and the others.
 * Of a range that is not complete, shards may stay unseen.
 */
bool shard_ranges_look_at(struct shard_ranges *r, uint64_t range);

/* See each shard that is there, by a list of them all.  Returns the exit code. */
int shard_ranges_list(struct shard_ranges *r);

/*
 * See what is new by a list, if so many ranges are not complete that this is cheaper than a look at
 * each.  The first call leaves it at the list that open has made.  Returns the exit code.
 */
int shard_ranges_look(struct shard_ranges *r);

#endif
