/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.h - the contents of a shard besides records, for callers that look at all of it
 */
#ifndef SHARD_READ_INSIDE_H
#define SHARD_READ_INSIDE_H

#include "libshard/store/read/reader.h"
#include "shard_pack.h"

/* I43, I53 and I54 of the statistics, if there are any. */
int reader_check_stat(struct shard_reader *r, struct shard_error *err);

#endif
