/* SPDX-License-Identifier: Apache-2.0 */
/*
 * before_append.h - does a token belong to this dataset as it was before others were appended?
 */
#ifndef SHARD_LOADER_BEFORE_APPEND_H
#define SHARD_LOADER_BEFORE_APPEND_H

#include "libshard/feed/steps.h"
#include "libshard/loader/token.h"

struct shard_dataset;
struct shard_selection;

/* The dataset, and the loader's selection of it, as they were. */
struct before_append {
	char id[65], selection[65]; /* its digest; empty: all records */
	uint64_t records;	    /* in its order: as many as it had, or as were selected */
	struct steps_early early;   /* epochs over these records; none if the token's was not begun */
};

/* Is the manifest of the token's dataset kept beside this one?  It is not opened. */
bool before_append_is_kept(const struct shard_dataset *ds, const struct token *t);

/*
 * Read the kept manifest.  MISMATCH if it is not there, or if this dataset does not begin with the
 * same shards.
 */
int before_append_find(struct before_append *out, const struct shard_dataset *ds,
		       const struct shard_selection *selection, const struct token *t, struct shard_error *err);

#endif
