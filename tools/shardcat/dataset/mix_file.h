/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix_file.h - a mixture from a file: a line `WEIGHT DIR [SELECTION]` for each source
 *
 * Words are separated by spaces or tabs.  Empty lines and those that begin with # are left out.
 * Paths are those of the folder that the command runs in.
 */
#ifndef SHARD_DATASET_MIX_FILE_H
#define SHARD_DATASET_MIX_FILE_H

#include "shard_mix.h"
#include "shard_select.h"
#include "tools/shardcat/dataset/target.h"

struct mix_file {
	const char *path;
	char *text;
	uint32_t count;			 /* of sources */
	struct shard_mix_source *source; /* [count] */
	struct target **of;		 /* [count] the dataset of each, which other sources may share */
	struct target *target;		 /* [target_count] */
	uint32_t target_count;
	struct shard_mix *mix;
};

/* Returns an exit code.  Close in any case. */
int mix_file_open(struct mix_file *f, const char *path);
void mix_file_close(struct mix_file *f);

#endif
