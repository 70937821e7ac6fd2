/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_chunks.h - whole chunks of a shard, read and decoded
 */
#ifndef SHARD_READ_READER_CHUNKS_H
#define SHARD_READ_READER_CHUNKS_H

#include "libshard/dataset/reader.h"
#include "shard_pack.h"

/*
 * Decode the whole chunk `idx` of a compressed group.  If the reader checks hashes, the group's
 * tables must have been checked before.  With `check` the stored and the decoded bytes are hashed.
 */
int reader_read_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, bool check, uint8_t *dst,
		      struct shard_error *err);
/* I44 for a chunk that was decoded without a check.  `decoded` is not on the map. */
int reader_check_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, uint8_t *decoded, struct shard_error *err);
/* Ask the kernel to fetch `count` chunks, 1 or more, ahead of their use. */
void reader_fetch_chunks(struct shard_reader *r, uint32_t group, uint64_t idx, uint64_t count);

#endif
