/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal_dataset.h - shards become a dataset
 */
#ifndef SHARD_BUILD_SEAL_DATASET_H
#define SHARD_BUILD_SEAL_DATASET_H

struct job;

/*
 * Compare every shard with its receipt, write the manifest and remove .shardpack.  The
 * account is made anew from what is on disk and covers the whole plan: it adds up, or there
 * is no manifest.  Returns the exit code: EXIT_MISMATCH if shards are missing.
 */
int seal_run(const struct job *job);

/* The account of a dataset that is sealed already, from its shards. */
int seal_recount(const struct job *job);

#endif
