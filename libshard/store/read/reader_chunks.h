/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_chunks.h - whole chunks of a shard, read and decoded
 */
#ifndef SHARD_READ_READER_CHUNKS_H
#define SHARD_READ_READER_CHUNKS_H

#include "libshard/store/read/reader.h"
#include "shard_pack.h"

/*
 * Chunk `idx` of a compressed group, all of it, whose tables were checked if anything is.  With
 * `check` the stored and the decoded bytes are hashed.
 */
int reader_read_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, bool check, uint8_t *dst, struct shard_error *err);
/* Have so many chunks fetched, 1 or more. */
void reader_fetch_chunks(struct shard_reader *r, uint32_t group, uint64_t idx, uint64_t count);

#endif
