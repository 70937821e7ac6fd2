/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_hash.h - the bare XXH3-64 loop
 */
#ifndef SHARD_COMMON_BOUND_HASH_H
#define SHARD_COMMON_BOUND_HASH_H

#include "bench/common/data.h"

/* Hash every image where it is mapped.  GB/s. */
double bound_hash(const struct data_files *files, const uint8_t *const *map, unsigned thread_count);

#endif
