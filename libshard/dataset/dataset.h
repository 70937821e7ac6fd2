/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - a dataset as feed/ and the verifier see it
 */
#ifndef SHARD_READ_DATASET_H
#define SHARD_READ_DATASET_H

#include <stdatomic.h>

#include "libshard/dataset/dataset_readers.h"
#include "libshard/dataset/manifest_file.h"
#include "libshard/dataset/reader.h"
#include "libshard/format/manifest.h"
#include "shard.h"
#include "shard_pack.h"

#define DATASET_MANIFEST "dataset.manifest"

struct shard_dataset { /* const after open, but for the readers, which come and go */
	char *dir;
	char *manifest_path;
	struct manifest_file text;
	struct manifest m;
	struct shard_dataset_options o;
	uint64_t *first_record;				 /* [shard_count + 1]: shard s holds [first[s], first[s + 1]) */
	const char **line;				 /* [shard_count]: where in the text its file name starts */
	char *class_names;				 /* NUL-terminated, one behind the other */
	uint64_t *class_at;				 /* [class_count]: where in class_names */
	struct shard_moments *moments[SHARD_FIELDS_MAX]; /* one per channel, or NULL */
	uint64_t *class_records[SHARD_FIELDS_MAX];
	uint64_t stat_count[2][SHARD_FIELDS_MAX]; /* [kind - 1] */
	struct readers readers;			  /* of the shards that are open */

	/* Of a joined dataset (dataset_join.h), which has readers of its own. */
	struct shard_dataset **part; /* [part_count] */
	uint64_t *part_shard;	     /* [part_count + 1]: part p has the shards [part_shard[p], part_shard[p + 1]) */
	uint32_t part_count;	     /* 0: it is an ordinary dataset */
	bool parts_differ;	     /* not all have their records stored as the schema says */
	uint32_t uneven_groups;	     /* a bit for each group that is not stored alike in all parts */
};

/* Which shard holds record `idx`, which must be below record_count. */
uint64_t dataset_shard_of(const struct shard_dataset *ds, uint64_t idx);

/*
 * A reader of a shard, opened if it is not open yet, for a caller between readers_enter() and
 * readers_leave().
 */
int dataset_use_shard(struct shard_dataset *ds, uint64_t idx, struct shard_reader **out, struct shard_error *err);

/* A reader of a shard for a caller who closes it before the dataset. */
int dataset_open_shard(const struct shard_dataset *ds, uint64_t idx, struct shard_reader **out,
		       struct shard_error *err);

/*
 * Which dataset it is: the manifest's SHA-256, in hex, as shard_dataset_info() says it besides what
 * needs all its lines.
 */
void dataset_id(const struct shard_dataset *ds, char id[65]);

/* Units and bytes in all shards, by arithmetic; the number of shards is returned. */
uint64_t dataset_totals(const struct shard_dataset *ds, uint64_t *units, uint64_t *bytes);

#endif
