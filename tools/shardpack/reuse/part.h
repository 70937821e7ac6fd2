/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.h - shards that lie in a row in a finished dataset: what another dataset is made of
 */
#ifndef SHARD_REUSE_PART_H
#define SHARD_REUSE_PART_H

#include <stdint.h>

#include "shard_pack.h"
#include "shard_reuse.h"
#include "shard_select.h"

struct part {
	const char *dir; /* as the user named it */
	struct shard_dataset *ds;
	struct shard_dataset_info info;
	uint64_t first, count; /* shards */
};

/* Open a dataset: a part with all its shards.  Says why it fails and returns the exit code. */
int part_open(struct part *p, const char *dir);
void part_close(struct part *p);

/* What the manifest says of shard `i` of the part, which is less than its count. */
int part_entry(const struct part *p, uint64_t i, struct shard_entry *out);

/* A view of a reader's, copied with a NUL behind it: a disk may fail under a map. */
int part_copy(const struct shard_reader *r, const struct shard_view *view, char *out);

/* The key of a record of the dataset, with a NUL behind it, and its length; 0 if it has none. */
int part_key(const struct part *p, uint64_t record, char out[SHARD_KEY_BYTES_MAX + 1], size_t *bytes);

/* The library's message, as a failure. */
int part_fail(const struct shard_error *err);

#endif
