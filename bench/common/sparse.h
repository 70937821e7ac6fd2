/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse.h - large datasets that take little room on a disk
 */
#ifndef SHARD_COMMON_SPARSE_H
#define SHARD_COMMON_SPARSE_H

#include "bench/common/data.h"

/*
 * data_make() of sparse shards: they have their pages and tables, and a hole of zeros where the
 * records would be.  Of the records `filled`, every shard has the hashes of random bytes, but only
 * the first, the middle and the last shard have these bytes; without any, each hash is right.
 */
char *data_make_sparse(const struct bench *b, const struct data_shape *shape, const uint64_t *filled,
		       size_t filled_count);

#endif
