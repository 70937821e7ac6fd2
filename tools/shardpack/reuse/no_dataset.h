/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_dataset.h - what to type if `shardpack append` gets something that is no dataset
 */
#ifndef SHARD_REUSE_NO_DATASET_H
#define SHARD_REUSE_NO_DATASET_H

#include <stddef.h>

/*
 * If one of these words of `shardpack append DIR SRC...` is there and is no dataset, say so, and
 * which commands make one of it and append it, and return EXIT_USAGE.  What is not there, or cannot
 * be looked at, is left to the one that opens it.
 */
int no_dataset_check(const char *const *words, size_t count);

#endif
