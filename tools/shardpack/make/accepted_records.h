/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accepted_records.h - the records of a shard that were made of damaged inputs
 *
 * Used when the receipt is lost.  The shard keeps the number of the reason, not the sentence.
 */
#ifndef SHARD_BUILD_ACCEPTED_RECORDS_H
#define SHARD_BUILD_ACCEPTED_RECORDS_H

#include <stdint.h>

struct job;
struct shard_reader;

/* Call `each` for all of them in order, until it fails.  Returns the exit code. */
int accepted_find(const struct job *job, uint64_t shard_idx, struct shard_reader *reader,
		  int (*each)(void *context, uint64_t ordinal, uint32_t reason), void *context);

#endif
