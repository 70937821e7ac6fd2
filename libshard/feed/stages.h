/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.h - the stages of a feed: one for each group whose chunks are worth keeping
 *
 * A feed keeps as many decoded chunks as its order needs to decode each of them once.  Those are
 * the chunks of a window of this rank, and chunks of the next window that other threads need while
 * one thread is still in this one.  This decides about speed only, never about the order.
 */
#ifndef SHARD_FEED_STAGES_H
#define SHARD_FEED_STAGES_H

#include "libshard/feed/stage.h"
#include "shard.h"

struct layouts;
struct steps;

struct stages {
	struct stage *of[SHARD_GROUPS_MAX]; /* NULL: the group needs none */
	void *memory;
	uint64_t bytes; /* of all blocks */
};

/*
 * While one thread is still at the end of a window, the others may be `rows_ahead` rows ahead.  All
 * blocks have at most `most_bytes`; 0 stands for a part of the available memory.
 */
int stages_open(struct stages *s, const struct shard_dataset *ds, const struct layouts *layouts,
		const struct steps *steps, uint64_t rows_ahead, uint64_t most_bytes, struct shard_error *err);
void stages_close(struct stages *s, bool inherited); /* inherited: the caller is a forked child */
uint64_t stages_unfinished(struct stages *s);	     /* unfinished_chunk_count of the statistics */

#endif
