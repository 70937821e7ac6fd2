/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_reuse.h - `shardpack merge`, `split` and `append`
 */
#ifndef SHARD_SHARDPACK_CMD_REUSE_H
#define SHARD_SHARDPACK_CMD_REUSE_H

struct cli_verb;

extern const struct cli_verb cmd_merge, cmd_split, cmd_append;

#endif
