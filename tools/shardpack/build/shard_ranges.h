/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_ranges.h - which shards are there, range by range, found with few looks at a large folder
 *
 * Those who build a range do it in order.  So one look at its first missing shard tells whether it
 * goes on, and one at its last whether it is most likely complete.  A range is complete when each
 * of its shards was seen.
 */
#ifndef SHARD_BUILD_SHARD_RANGES_H
#define SHARD_BUILD_SHARD_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/shardpack/build/shard_list.h"

struct shard_ranges { /* start it zeroed */
	const char *out_dir;
	uint64_t shards, count; /* of a range; of ranges */
	struct shard_list list;
	uint64_t *next; /* [count] all before it in the range were seen */
	bool is_new;	/* the list was made just now */
};

/* `out_dir` must live on.  Returns the exit code.  Close it all the same if this fails. */
int shard_ranges_open(struct shard_ranges *r, const char *out_dir, uint64_t shard_count);
void shard_ranges_close(struct shard_ranges *r);

/* By the plan alone: how many shards a range has, the last range excepted. */
uint64_t shard_ranges_shards(uint64_t shard_count);

/* The one behind its last shard. */
uint64_t shard_ranges_end(const struct shard_ranges *r, uint64_t range);

/* By what was seen, without a look. */
bool shard_ranges_is_complete(struct shard_ranges *r, uint64_t range);

/* It is there now: it was seen, or a look sees it.  `see` has seen it. */
bool shard_ranges_has(struct shard_ranges *r, uint64_t shard_idx);
void shard_ranges_see(struct shard_ranges *r, uint64_t shard_idx);

/* Is its last shard new there?  One that was seen before says nothing of the others. */
bool shard_ranges_has_come(struct shard_ranges *r, uint64_t range);

/* Look at all ranges that are not complete; not yet after open.  Returns the exit code. */
int shard_ranges_look(struct shard_ranges *r);

#endif
