/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bash.h - completion for bash 4 and later, from the tables
 */
#ifndef SHARD_CLI_CLI_BASH_H
#define SHARD_CLI_CLI_BASH_H

#include "tools/cli/cli_table.h"

void cli_complete_bash(FILE *out, const struct cli_program *program);

#endif
