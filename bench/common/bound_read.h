/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_read.h - the bare loop of reads past the page cache
 */
#ifndef SHARD_COMMON_BOUND_READ_H
#define SHARD_COMMON_BOUND_READ_H

#include "bench/common/data.h"

/* Read all files past the page cache.  GB/s. */
#define BOUND_BLOCK_MOST ((size_t)16 << 20)
double bound_read(const struct data_files *files, size_t block_bytes, unsigned thread_count);

#endif
