/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - decoded chunks of one group, shared by all threads that take records from them
 *
 * A stage is made of blocks.  A new chunk takes the block that was filled longest ago.  An order in
 * windows needs a chunk only until its window ends.  So a stage with room for a window, and for the
 * steps under way at its end, decodes each chunk once an epoch.  A smaller stage decodes some
 * chunks again, and delivers the same.
 *
 * A block that a thread holds keeps its contents.  A thread that is told to fill a block must do so
 * before it waits for a block that another thread fills.
 */
#ifndef SHARD_FEED_STAGE_H
#define SHARD_FEED_STAGE_H

#include <stdbool.h>
#include <stdint.h>

enum stage_answer {
	STAGE_READY, /* the chunk is there, and the caller holds it */
	STAGE_FILL,  /* the chunk is not there, and the caller has to fill this block */
	STAGE_BUSY,  /* another thread is filling it */
	STAGE_FULL,  /* no block is free at the moment */
};

struct stage;

/*
 * The blocks lie in `memory`.  With `counts_unfinished` the stage counts chunks that make room
 * before all their records were taken.  Returns NULL if there is no memory.
 */
struct stage *stage_open(uint8_t *memory, uint64_t block_bytes, uint32_t block_count, bool counts_unfinished);
void stage_close(struct stage *s, bool inherited); /* inherited: the caller is a forked child */

/*
 * The key of a chunk is the dataset index of its first record.  A stage that is NULL is always
 * full.
 */
enum stage_answer stage_get(struct stage *s, uint64_t key, uint32_t *block);
uint8_t *stage_at(const struct stage *s, uint32_t block);

/*
 * After STAGE_FILL: the block has so many records, and the caller holds it.  0: filling has failed.
 */
void stage_filled(struct stage *s, uint32_t block, uint32_t records);

/* The caller lets go of the block.  It has taken so many records from it. */
void stage_leave(struct stage *s, uint32_t block, uint32_t records);

/* Wait until no thread is filling the chunk. */
void stage_wait(struct stage *s, uint64_t key);

uint64_t stage_unfinished(struct stage *s); /* how many chunks were counted */

#endif
