/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_parse.h - from the words behind a verb to the verb's struct
 */
#ifndef SHARD_CLI_CLI_PARSE_H
#define SHARD_CLI_CLI_PARSE_H

#include "tools/common/cli_args.h"

struct cli_parse {
	struct cli_args args;	  /* program and verb are the caller's; the others are filled in */
	struct cli_common common; /* with help, nothing else counts */
	struct cli_flat flat;
	void *options;	    /* the verb's struct */
	const char **words; /* the positional arguments; room for argc */
	size_t word_count;
	size_t argc; /* more values than that no option has */
};

/*
 * `argv` are the words behind the verb.  Returns the exit code.  The first mistake ends it, with
 * one line and a hint.
 */
int cli_parse(struct cli_parse *p, int argc, char **argv);
void cli_parse_free(struct cli_parse *p); /* and all that the verb's struct points to */

#endif
