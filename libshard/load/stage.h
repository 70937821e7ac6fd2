/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - chunks of one group that were decoded, for all rows, steps and threads that take records
 * from them
 *
 * An order in windows needs a chunk until the window ends, and not after that.  So a stage that has
 * room for a window, and for the steps under way at its end, decodes each chunk once an epoch, although
 * it simply writes over what has been there longest.  A smaller stage decodes some chunks again, and
 * delivers the same.
 *
 * A block that a thread holds keeps its contents.  A thread that is told to fill a block fills it
 * before it waits for anything that another thread fills.
 */
#ifndef SHARD_LOAD_STAGE_H
#define SHARD_LOAD_STAGE_H

#include <stdbool.h>
#include <stdint.h>

enum stage_answer {
	STAGE_READY, /* the chunk is there, and held */
	STAGE_FILL,  /* it is not there, and the caller is to fill this block */
	STAGE_BUSY,  /* another thread fills it */
	STAGE_FULL,  /* no block can be had just now, or ever */
};

struct stage;

/*
 * Blocks in `memory`, which has room for them.  With `counts_unfinished` a chunk that makes room before
 * all its records were taken is counted.  NULL: no memory.
 */
struct stage *stage_open(uint8_t *memory, uint64_t block_bytes, uint32_t block_count, bool counts_unfinished);
void stage_close(struct stage *s, bool inherited); /* inherited: by a child process, which has no lock to destroy */

/* A chunk is named by the dataset's index of its first record.  `s` may be NULL: always full. */
enum stage_answer stage_get(struct stage *s, uint64_t key, uint32_t *block);
uint8_t *stage_at(const struct stage *s, uint32_t block);

/* After STAGE_FILL: the block has so many records and the caller holds it; 0: it could not be filled. */
void stage_filled(struct stage *s, uint32_t block, uint32_t records);

/* The caller holds the block no longer, and has taken so many records from it. */
void stage_leave(struct stage *s, uint32_t block, uint32_t records);

/* Wait until no thread fills the chunk. */
void stage_wait(struct stage *s, uint64_t key);

uint64_t stage_unfinished(struct stage *s); /* chunks that were counted */

#endif
