/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - the target of a verb: a dataset, or one shard on its own
 *
 * Both are records with an index, so that most verbs need not know which it is.  Maps are
 * guarded: a file that shrinks or cannot be read is an error, never a SIGBUS.  Functions
 * that return an exit code have printed why if it is not EXIT_DONE.
 */
#ifndef SHARD_DATASET_TARGET_H
#define SHARD_DATASET_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"
#include "shard_pack.h"
#include "shard_select.h"

struct target {
	const char *path;
	struct shard_dataset *dataset; /* this, */
	struct shard_reader *reader;   /* or this */
	const struct shard_schema *schema;
	uint64_t record_count;
	char key[SHARD_KEY_BYTES_MAX]; /* the last one of the dataset's */
};

/* One record, decoded: group by group; NULL for groups that were not asked for. */
struct record {
	void *group[SHARD_GROUPS_MAX];
	uint64_t idx;
};

int target_open(struct target *t, const char *path);
/* The same; a dataset must have this id, 64 hex digits. */
int target_open_id(struct target *t, const char *path, const char *id);
/* The same for a verb that needs a manifest: a shard file is refused. */
int target_open_dataset(struct target *t, const char *path);
void target_close(struct target *t);

/* The shard, or a dataset's first one, borrowed; NULL if it has none. */
int target_first_reader(struct target *t, struct shard_reader **out);

int target_check_index(const struct target *t, uint64_t idx);

/* Read `count` neighbouring records of one group, count x stride bytes. */
int target_read(struct target *t, uint32_t group, uint64_t first, uint64_t count, void *dst);

/* All groups that `field` (or, if it is NULL, any field) needs. */
int record_read(struct target *t, uint64_t idx, const struct shard_field *field, struct record *out);
void record_free(struct record *record);

/* Zero bytes if there are no keys.  The bytes live until the next call. */
int target_key(struct target *t, uint64_t idx, struct shard_view *out);

/* SHARD_OK or SHARD_END, from the manifest or from the shard's own statistics. */
int target_moments(struct target *t, uint32_t field, uint32_t channel, struct shard_moments *out,
		   struct shard_error *err);
int target_class_records(struct target *t, uint32_t field, uint64_t class_idx, uint64_t *out, struct shard_error *err);

/* NULL if there is no such class or, in a shard on its own, no names. */
const char *target_class_name(const struct target *t, uint64_t class_idx);
/* The class of this name, of `bytes` bytes.  Returns false if there is none. */
bool target_find_class(const struct target *t, const char *name, size_t bytes, int64_t *out);

/* The selection in a file; *out becomes NULL if `path` is.  Returns an exit code. */
int target_selection(const struct target *t, const char *path, struct shard_selection **out);

/* The first field that holds the index of a class, or NULL.  It is a scalar integer. */
const struct shard_field *target_label_field(const struct target *t);

#endif
