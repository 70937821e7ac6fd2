/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accepted.h - the records of a shard that are of damaged inputs, as their field `damage` says
 *
 * For who has no receipt any more.  The sentence that came with the verdict is not in the shard.
 */
#ifndef SHARDPACK_ACCEPTED_H
#define SHARDPACK_ACCEPTED_H

#include "tools/shardpack/build/job.h"

/* Call `each` for every one of them, in order, until it does not return EXIT_DONE.  Returns the exit code. */
int accepted_find(const struct job *job, uint64_t shard_idx, struct shard_reader *reader,
		  int (*each)(void *context, uint64_t ordinal, uint32_t reason), void *context);

#endif /* SHARDPACK_ACCEPTED_H */
