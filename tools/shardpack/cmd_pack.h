/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_pack.h - `shardpack SOURCE` and `shardpack plan SOURCE`: the row of their verb is that of the source
 */
#ifndef SHARD_SHARDPACK_CMD_PACK_H
#define SHARD_SHARDPACK_CMD_PACK_H

struct cli_args;

int cmd_pack(const struct cli_args *args);
int cmd_plan(const struct cli_args *args);

#endif
