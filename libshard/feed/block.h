/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - some rows of a step that one thread fills together
 */
#ifndef SHARD_FEED_BLOCK_H
#define SHARD_FEED_BLOCK_H

#include "libshard/feed/slot.h"
#include "libshard/feed/supply.h"
#include "shard_pack.h"

#define BLOCK_ROWS 64u

/* Where the record of a row is. */
struct located {
	struct shard_reader *r;
	uint64_t shard, inside;
	struct path_choice path; /* that was decided for the shard */
};

struct block {
	struct supply *supply;
	const struct layout *layout;
	struct scratch *scratch;
	struct slot *slot;
	struct fill_counts *counts;
	struct shard_error *err;
	uint32_t first, count; /* rows of the slot */
	uint32_t hot_rows;     /* rows of hot shards, in this and earlier blocks of the slot */
	bool strict;	       /* damage is an error */
	struct path_times times;
	struct located at[BLOCK_ROWS];
};

#define BLOCK_FETCH_BYTES 256u /* the processor itself prefetches the rest of a record */

/* Prefetch a record.  This must be inlined: gcc drops calls of a function that only prefetches. */
__attribute__((always_inline)) static inline void block_fetch_ahead(const uint8_t *src, uint64_t bytes)
{
	for (uint64_t i = 0; i < (bytes < BLOCK_FETCH_BYTES ? bytes : BLOCK_FETCH_BYTES); i += 64)
		__builtin_prefetch(src + i);
}

#endif
