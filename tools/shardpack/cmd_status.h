/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_status.h - `shardpack status`
 */
#ifndef SHARD_SHARDPACK_CMD_STATUS_H
#define SHARD_SHARDPACK_CMD_STATUS_H

struct cli_verb;

extern const struct cli_verb cmd_status;

#endif
