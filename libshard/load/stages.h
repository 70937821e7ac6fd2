/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.h - the stages of a feed: one for each group whose chunks are worth keeping
 *
 * A feed keeps as many decoded chunks as its order needs for each to be decoded once: those of a window
 * of this rank, and those that other threads may have begun of the next one while one thread is still
 * in it.  That is speed only: the order is settled without it.
 */
#ifndef SHARD_LOAD_STAGES_H
#define SHARD_LOAD_STAGES_H

#include "libshard/load/stage.h"
#include "shard.h"

struct steps;

struct stages {
	struct stage *of[SHARD_GROUPS_MAX]; /* NULL: the group needs none */
	void *memory;
	uint64_t bytes; /* of all blocks */
};

/*
 * `rows_ahead`: rows that threads may be at while one of them is still at the end of a window.
 * `most_bytes`: of all blocks; 0: a part of the memory that is available.
 */
int stages_open(struct stages *s, const struct shard_dataset *ds, const struct steps *steps, uint64_t rows_ahead,
		uint64_t most_bytes, struct shard_error *err);
void stages_close(struct stages *s, bool inherited); /* inherited: by a child process, which has no blocks */
uint64_t stages_unfinished(struct stages *s); /* struct shard_loader_stats: unfinished_chunk_count */

#endif
