/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - the whole command line of a tool: cli_table.h says how its tables look
 */
#ifndef SHARD_CLI_CLI_H
#define SHARD_CLI_CLI_H

#include "tools/common/cli_args.h"
#include "tools/common/cli_table.h"
#include "tools/common/exit_code.h"

/* All of a tool's main(): messages, signals, parsing, the verb, and stdout's last error. */
int cli_main(const struct cli_program *program, int argc, char **argv);

#endif
