/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_workers.h - inputs converted by many threads, results taken in order by one
 *
 * Workers take ordinals in order and finish them in any; the results come out in order, so
 * the number of workers never changes a byte.  Results wait in a bounded ring of slots:
 * when the taker is slow, workers wait, and memory does not grow.
 */
#ifndef SHARDPACK_PIPELINE_H
#define SHARDPACK_PIPELINE_H

#include "tools/common/progress.h"
#include "tools/shardpack/build/convert.h"

struct pipeline_range {
	uint64_t first, count; /* ordinals */
};

struct pipeline_options {
	const struct plan *plan;
	const struct shard_schema *schema; /* of its recipe */
	int source_fd;
	const struct stored *stored;	     /* or NULL */
	const struct quarantine *quarantine; /* or NULL */
	const struct pipeline_range *ranges; /* ascending; const while the pipeline is open */
	uint64_t range_count;
	unsigned worker_count;
	struct progress *progress; /* ticked while waiting; images are added by the workers */
};

struct pipeline;

/* Start the workers.  Returns the exit code. */
int pipeline_open(struct pipeline **out, const struct pipeline_options *opt);

/*
 * The next result in order, borrowed until pipeline_release(); NULL behind the last.
 * Returns the exit code: EXIT_INTERRUPTED if the user asked to stop.
 */
int pipeline_next(struct pipeline *p, struct result **out);
void pipeline_release(struct pipeline *p);

/* Stop the workers, wherever they are, and free all. */
void pipeline_close(struct pipeline *p);

#endif /* SHARDPACK_PIPELINE_H */
