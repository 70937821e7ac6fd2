/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_packed.h - rows of compressed groups: chunks are decoded, and records taken out of them
 */
#ifndef SHARD_FEED_SLOT_PACKED_H
#define SHARD_FEED_SLOT_PACKED_H

#include "libshard/feed/block.h"

/* Bytes of the longest decoded chunk; 0 if no group is compressed. */
uint64_t slot_packed_chunk_bytes(const struct layouts *layouts);

/* Begin to fetch the chunks of rows of shards that are not hot. */
void slot_packed_fetch(struct block *b, uint32_t group);

/* Fill the rows of a block, all of which are located. */
int slot_packed_fill(struct block *b, uint32_t group);

#endif
