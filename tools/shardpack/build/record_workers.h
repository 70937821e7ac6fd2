/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_workers.h - blocks of fixed records filled by threads, taken in order by one
 *
 * What pipeline.h is for images.  Blocks wait in a ring of a few megabytes; its size and the number of threads change no
 * byte.  A block never spans two ranges.
 */
#ifndef SHARDPACK_BLOCKS_H
#define SHARDPACK_BLOCKS_H

#include "tools/common/progress.h"
#include "tools/shardpack/build/fixed.h"
#include "tools/shardpack/build/image_workers.h"

struct blocks_options {
	const struct plan *plan;
	const struct shard_schema *schema;
	const struct stored *stored;
	const struct pipeline_range *ranges; /* ascending, none empty; const while it is open */
	uint64_t range_count;
	unsigned worker_count;
	struct progress *progress; /* ticked while waiting; records are added by the workers */
};

struct blocks;

/* Start the workers.  Returns the exit code. */
int blocks_open(struct blocks **out, const struct blocks_options *opt);

/* The next block in order, borrowed until blocks_release(); NULL behind the last.  EXIT_INTERRUPTED if the user asked to stop. */
int blocks_next(struct blocks *p, struct fixed_block **out);
void blocks_release(struct blocks *p);

/* Stop the workers, wherever they are, and free all. */
void blocks_close(struct blocks *p);

#endif /* SHARDPACK_BLOCKS_H */
