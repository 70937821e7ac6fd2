/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_zsh.h - completion for zsh, from the tables
 */
#ifndef SHARD_CLI_CLI_ZSH_H
#define SHARD_CLI_CLI_ZSH_H

#include "tools/cli/cli_table.h"

void cli_complete_zsh(FILE *out, const struct cli_program *program);

#endif
