/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_list.h - which shards of a plan have their final names, found by one look at the folder
 *
 * A name appears only when its shard is complete, so the names say what is left to do.  What is in
 * the files is for published_find() and for `seal`.
 */
#ifndef SHARD_BUILD_SHARD_LIST_H
#define SHARD_BUILD_SHARD_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/text.h"

struct shard_list { /* start it zeroed */
	uint64_t shard_count, there_count;
	bool *there; /* [shard_count] */
};

/*
 * List the folder, again if it was listed before: then shards that came meanwhile are added.  Those
 * that were removed meanwhile stay in the list: a build counts on no more work than it saw at
 * first, and `seal` looks at all of them.  Returns the exit code.
 */
int shard_list_look(struct shard_list *l, const char *out_dir, uint64_t shard_count);
void shard_list_free(struct shard_list *l);

/* The number in "00005.shard"; false if it is no name of a shard. */
bool shard_list_number(const char *name, uint64_t *shard_idx);

/*
 * The shards that are missing, as job schedulers write a list: "0,17,203-210".  Ends with ",..."
 * behind the range that makes it longer than `bytes_max`.
 */
void shard_list_missing(const struct shard_list *l, size_t bytes_max, struct text *out);

/*
 * How long one shard takes the machines together, in nanoseconds: the mean time between the last
 * shards that were written, at most a hundred.  0 if fewer than two are there, or times are equal.
 */
uint64_t shard_list_pace(const struct shard_list *l, const char *out_dir, int *code);

#endif
