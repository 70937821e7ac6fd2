/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.h - a job that takes batches as fast as they come, and does nothing with them
 *
 * An error ends the program.
 */
#ifndef SHARD_COMMON_TRAINER_H
#define SHARD_COMMON_TRAINER_H

#include "bench/common/bench.h"
#include "shard.h"

#ifdef __cplusplus
extern "C" {
#endif

struct trainer {
	const char *dir;
	uint32_t check; /* enum shard_check */
	struct shard_loader_options options;
	void *memory; /* lent to the loader as its ring; NULL: the loader makes its own */
	uint64_t memory_bytes;
	/* batches that the job holds while it asks for the next; 1 or more, below slot_count */
	uint32_t kept_count;

	struct shard_dataset *ds; /* NULL: not open */
	struct shard_loader *loader;
};

/*
 * This many batches have four times the last-level cache, or are as many as a loader has slots for:
 * a ring of all of them lives in no cache.
 */
uint32_t trainer_kept(uint64_t batch_bytes);

void trainer_open_dataset(struct trainer *t);
void trainer_open_loader(struct trainer *t); /* and the dataset, if it is not open */
void trainer_close_loader(struct trainer *t);
void trainer_close(struct trainer *t); /* both; a trainer that is not open stays so */

/*
 * Take batches until the epoch ends, or `most` were taken.  Returns the number of records.  If not
 * NULL, `idx` gets their indices.
 */
uint64_t trainer_take(struct trainer *t, uint64_t most, uint64_t *idx);

#ifdef __cplusplus
}
#endif

#endif
