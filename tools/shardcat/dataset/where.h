/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where.h - records of a dataset by a condition on one field: label=cat,3 or score>=0.5
 */
#ifndef SHARD_DATASET_WHERE_H
#define SHARD_DATASET_WHERE_H

#include "tools/common/cli.h"
#include "tools/shardcat/dataset/target.h"

/*
 * The records of `of` (NULL: of all) that fit the condition `text` of --where.  Reads the groups of
 * the field alone.  Returns an exit code.
 */
int where_select(struct shard_selection **out, const struct cli_args *args, const struct target *t,
		 const struct shard_selection *of, const char *text);

#endif
