/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - chunks that were decoded, for all the rows, steps and threads that take records from them
 *
 * With an order in windows, what a window needs is needed until it ends, and not after that.  So a stage with room for a
 * window, and for the steps under way at its end, decodes each chunk once an epoch, though it just writes over what has
 * been there longest.  A smaller one decodes some again, and is not otherwise different.
 *
 * A block that somebody holds keeps its contents.  Whoever is told to fill one fills it before it waits for anything that
 * another thread fills.
 */
#ifndef LIBSHARD_LOAD_STAGE_H
#define LIBSHARD_LOAD_STAGE_H

#include "libshard/load/loader.h"

enum stage_answer {
	STAGE_READY, /* it is there, and held */
	STAGE_FILL,  /* it is not, and the caller is to fill this block */
	STAGE_BUSY,  /* another thread fills it */
	STAGE_FULL,  /* no block can be had just now, or ever */
};

/* A chunk is named by the dataset's index of its first record.  `s` may be NULL: always full. */
enum stage_answer stage_get(struct stage *s, uint64_t key, uint32_t *block);
uint8_t *stage_at(const struct stage *s, uint32_t block);

/* Of STAGE_FILL: there are so many records in it now, and the caller holds it; 0: it could not be filled. */
void stage_filled(struct stage *s, uint32_t block, uint32_t records);

/* It is held no longer; so many records were taken from it. */
void stage_leave(struct stage *s, uint32_t block, uint32_t records);

/* Until nobody fills it. */
void stage_wait(struct stage *s, uint64_t key);

/* ---- stage_size.c ---- */

struct stage_size {
	uint64_t block_bytes, block_count; /* 0: the group needs no stage */
	bool whole_chunks;		   /* this rank takes all records of a chunk */
};

/* Of each group; returns the bytes of all blocks, at most what the options allow. */
uint64_t stage_sizes(const struct shard_loader *l, struct stage_size size[SHARD_GROUPS_MAX]);

/* ---- all stages of a loader, one for each group that needs it ---- */

int stage_open_all(struct shard_loader *l, struct shard_error *err);
void stage_close_all(struct shard_loader *l, bool inherited); /* inherited: by a child, whose stages do not exist */
uint64_t stage_unfinished(struct shard_loader *l); /* struct shard_loader_stats: unfinished_chunk_count */

#endif
