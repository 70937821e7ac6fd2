/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.h - the table of sources
 */
#ifndef SHARD_SOURCES_SOURCES_H
#define SHARD_SOURCES_SOURCES_H

#include "tools/shardpack/plan/recipe.h"

struct request;
struct source;

/* By enum recipe_source, which is the order of --help. */
extern const struct source *const source_table[SOURCE_COUNT];

/* Call the scan() of the recipe's source, and then scan_end().  Returns the exit code. */
int source_scan(const struct request *r);

#endif
