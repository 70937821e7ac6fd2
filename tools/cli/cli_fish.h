/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_fish.h - completion for fish 3 and later, from the tables
 */
#ifndef SHARD_CLI_CLI_FISH_H
#define SHARD_CLI_CLI_FISH_H

#include "tools/cli/cli_table.h"

void cli_complete_fish(FILE *out, const struct cli_program *program);

#endif
