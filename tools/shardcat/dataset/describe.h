/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.h - schema and statistics, as text and as JSON
 *
 * Common to `info` and `manifest --json`, so that both call a thing by one name.
 */
#ifndef SHARD_DATASET_DESCRIBE_H
#define SHARD_DATASET_DESCRIBE_H

#include <stdint.h>
#include <stdio.h>

#include "shard.h"
#include "tools/common/json_out.h"
#include "tools/shardcat/dataset/target.h"

/* "3f9a…": 2 x bytes digits. */
#define HEX_CHARS 65
const char *hex_text(char out[HEX_CHARS], const uint8_t *data, size_t bytes);

/* A digest as `root` is written: the high half first, as xxh128sum prints it. */
const char *root_text(char out[HEX_CHARS], const uint8_t root[16]);

/* "groups": [...], "fields": [...] */
void describe_schema_json(struct json_out *j, const struct shard_schema *schema);

/* "statistics": [...]: moments of each field that has them.  Returns an exit code. */
int describe_moments_json(struct json_out *j, struct target *t);

/* Two tables, each line indented by two. */
void describe_schema(FILE *out, const struct shard_schema *schema);

/*
 * A line per field with moments: mean and std of its channels, scaled to 0..1.  Returns an exit
 * code.
 */
int describe_moments(FILE *out, struct target *t);

#endif
