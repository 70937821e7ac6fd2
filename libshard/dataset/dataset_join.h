/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_join.h - several datasets as one: the records and shards of the first, then of the second
 *
 * It has no manifest and no id.  Its schema is that of the first part, with as much room for values
 * that vary in length as the widest part has: call dataset_agree() before a field of other parts is
 * read.  The records lie in the shards as the schema of their own part says.
 */
#ifndef SHARD_READ_DATASET_JOIN_H
#define SHARD_READ_DATASET_JOIN_H

#include "libshard/dataset/dataset.h"

/*
 * Join `count` parts, 1 or more, which must outlive it.  shard_dataset_close() closes it, and no
 * part.  ARGUMENT if they were not opened with the same checks.
 */
int dataset_join(struct shard_dataset **out, struct shard_dataset *const *part, uint32_t count,
		 struct shard_error *err);

/* The number of record 0 of a part in the whole. */
uint64_t dataset_part_base(const struct shard_dataset *ds, uint32_t part);

/*
 * MISMATCH unless the datasets have the same fields, of those that `fields` has a bit for, and the
 * same classes.  Where values vary in length, the largest shapes may differ.  The message says what
 * differs, and what to do.
 */
int dataset_agree(const struct shard_dataset *a, const struct shard_dataset *b, uint32_t fields,
		  struct shard_error *err);

/* Returns whether it, or a part of it, lies on a network file system. */
bool dataset_is_remote(const struct shard_dataset *ds);

#endif
