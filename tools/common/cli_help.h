/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_help.h - the text of --help
 */
#ifndef SHARD_CLI_CLI_HELP_H
#define SHARD_CLI_CLI_HELP_H

#include "tools/common/cli_table.h"

void cli_help_program(FILE *out, const struct cli_program *program);
void cli_help_verb(FILE *out, const struct cli_program *program, const struct cli_verb *verb);

#endif
