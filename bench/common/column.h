/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.h - datasets of one number for each record
 */
#ifndef SHARD_COMMON_COLUMN_H
#define SHARD_COMMON_COLUMN_H

#include "bench/common/bench.h"
#include "shard_pack.h"

/*
 * The folder `name` in bench_dir(), with one shard whose record i has i mod 251 in the integer
 * field x.  Made unless it is there already.  Returns its path, to be freed.
 */
char *data_make_column(const struct bench *b, const char *name, uint32_t dtype, uint64_t record_count);

#endif
