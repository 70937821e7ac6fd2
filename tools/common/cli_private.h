/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_private.h - what the cli_*.c files share
 */
#ifndef TOOLS_COMMON_CLI_PRIVATE_H
#define TOOLS_COMMON_CLI_PRIVATE_H

#include "tools/common/cli.h"

#define CLI_OPTIONS_MAX 64 /* one bit each in cli_args.given, positionals included */

/* cli.c: a verb's options one after the other: its own, then -q, -v and -h */
struct cli_flat {
	const struct cli_option *option[CLI_OPTIONS_MAX];
	unsigned count;
	unsigned own_count; /* those before the common ones */
};

void cli_flatten(const struct cli_verb *verb, struct cli_flat *flat);

/* cli_value.c */

/* Parse `text` into the member of `options`.  On failure false, and `why` says what it must be. */
bool cli_value_set(const struct cli_option *option, const char *text, void *options, char *why, size_t why_bytes);

/* "1 to 65500", "1 or more"; empty if the kind has no range or any value will do. */
void cli_range_text(const struct cli_option *option, char *out, size_t out_bytes);

/* Length of the choice number `idx`, which starts at *choice; 0 past the last. */
size_t cli_choice(const char *choices, unsigned idx, const char **choice);

/* "bilinear, bicubic, lanczos or box" */
void cli_choices_text(const char *choices, const char *last_word, char *out, size_t out_bytes);

/* What stands for the value in help: "DIR", or "hwc|chw"; NULL for flags. */
const char *cli_arg_name(const struct cli_option *option);

/* cli_help.c */
void cli_help_program(FILE *out, const struct cli_program *program);
void cli_help_verb(FILE *out, const struct cli_program *program, const struct cli_verb *verb);

/* "shardpack images SRC --out DIR [options]" */
void cli_usage_text(const struct cli_program *program, const struct cli_verb *verb, char *out, size_t out_bytes);

/* "SRC", "[SRC]", "SRC..." */
void cli_positional_text(const struct cli_option *positional, char *out, size_t out_bytes);

/* cli_man.c */
void cli_man(FILE *out, const struct cli_program *program);

/* cli_bash.c, cli_zsh.c, cli_fish.c */

/* True for the first verb in the table that begins with its first word. */
bool cli_first_of_its_word(const struct cli_program *program, const struct cli_verb *verb);

void cli_complete_bash(FILE *out, const struct cli_program *program);
void cli_complete_zsh(FILE *out, const struct cli_program *program);
void cli_complete_fish(FILE *out, const struct cli_program *program);

#endif
