/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_args.h - the arguments of a verb's function, and functions that query them
 */
#ifndef SHARD_CLI_CLI_ARGS_H
#define SHARD_CLI_CLI_ARGS_H

#include "tools/common/cli_table.h"
#include "tools/common/message.h"

struct cli_args {
	const struct cli_program *program;
	const struct cli_verb *verb;
	const void *options; /* the verb's struct, filled in */
	uint64_t given;	     /* for cli_given() */
};

/* True if the user typed the option or positional called `name`. */
bool cli_given(const struct cli_args *args, const char *name);

/*
 * For mistakes that only the verb can see, such as two options that exclude each other: prints, and
 * returns EXIT_USAGE.  args->verb may be NULL.
 */
int cli_misuse(const struct cli_args *args, const char *fmt, ...) MESSAGE_PRINTF(2, 3);

#endif
