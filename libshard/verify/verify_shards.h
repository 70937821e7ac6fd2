/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_shards.h - the shards that are being verified
 *
 * A dataset keeps its readers as long as it is open.  Each is a map, and a process may have only so
 * many (vm.max_map_count, 65,530).  So verify opens readers of its own, and closes each once nobody
 * uses it any more.  All functions run under the lock of the run.
 */
#ifndef SHARD_VERIFY_VERIFY_SHARDS_H
#define SHARD_VERIFY_VERIFY_SHARDS_H

#include "libshard/store/read/dataset.h"

struct verify_shard;

struct verify_shards {		     /* start it zeroed */
	struct shard_reader *single; /* not of a dataset: the caller's, and left open */
	struct verify_shard *first;
};

/* A reader with one user.  `ds` is NULL if there is only the single one. */
int verify_shards_open(struct verify_shards *v, const struct shard_dataset *ds, uint64_t idx, struct shard_reader **out,
		       struct shard_error *err);

/* One user more, and one less, after which it may be closed. */
void verify_shards_take(struct verify_shards *v, const struct shard_reader *r);
void verify_shards_give(struct verify_shards *v, const struct shard_reader *r);

/* Close what was never given back, as after an early end. */
void verify_shards_close(struct verify_shards *v);

/* Units of all groups. */
uint64_t verify_shards_units(const struct shard_reader *r);

#endif
