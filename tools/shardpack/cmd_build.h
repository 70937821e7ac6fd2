/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_build.h - `shardpack build` and `shardpack seal`
 */
#ifndef SHARD_SHARDPACK_CMD_BUILD_H
#define SHARD_SHARDPACK_CMD_BUILD_H

struct cli_verb;

extern const struct cli_verb cmd_build, cmd_seal;

#endif
