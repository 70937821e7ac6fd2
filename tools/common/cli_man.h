/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_man.h - the program's man page, from the tables
 */
#ifndef SHARD_CLI_CLI_MAN_H
#define SHARD_CLI_CLI_MAN_H

#include "tools/common/cli_table.h"

void cli_man(FILE *out, const struct cli_program *program);

#endif
