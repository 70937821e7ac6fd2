/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_pack.h - `shardpack SOURCE` and `shardpack plan SOURCE`, for every source of the table
 */
#ifndef SHARD_SHARDPACK_CMD_PACK_H
#define SHARD_SHARDPACK_CMD_PACK_H

struct cli_args;

/* The row of the verb is that of the source.  Both return the exit code. */
int cmd_pack(const struct cli_args *args);
int cmd_plan(const struct cli_args *args);

#endif
