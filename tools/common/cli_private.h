/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_private.h - what parsing, help, manual and completions share
 */
#ifndef SHARD_COMMON_CLI_PRIVATE_H
#define SHARD_COMMON_CLI_PRIVATE_H

#include "tools/common/cli.h"

/* ---- cli.c: questions to the tables ---- */

/* A verb's options one after the other: its own, then -q, -v and -h. */
struct cli_flat {
	const struct cli_option *option[CLI_OPTIONS_MAX];
	unsigned count;
	unsigned own_count; /* those before the common ones */
};

/* The text of a verb, or with NULL that of the program; its summary is in lower case. */
const struct cli_text *cli_text_of(const struct cli_program *program, const struct cli_verb *verb);

void cli_flatten(const struct cli_verb *verb, struct cli_flat *flat);

/* The values of the common options. */
struct cli_common {
	bool quiet, verbose;
	const char *help; /* NULL: not asked for; "": without a topic */
};

/* Length of the choice number `idx`, which starts at *choice; 0 past the last. */
size_t cli_choice(const char *choices, unsigned idx, const char **choice);

/* "bilinear, bicubic, lanczos or box" */
void cli_choices_text(const char *choices, const char *last_word, char *out, size_t out_bytes);

/* The placeholder of the value in help: "DIR", or "hwc|chw"; NULL for flags. */
const char *cli_arg_name(const struct cli_option *option);

/* "shardpack images SRC --out DIR [options]" */
void cli_usage_text(const struct cli_program *program, const struct cli_verb *verb, char *out, size_t out_bytes);

/* The verb that the words begin with, or NULL; its name *taken 1 or 2 of them. */
const struct cli_verb *cli_find_verb(const struct cli_program *program, char *const *word, int word_count, int *taken);

/* ---- cli_value.c: one value of the command line ---- */

/*
 * Parse `text` into the member of `options`.  On failure false, and `why` says which form it must
 * have.
 */
bool cli_value_set(const struct cli_option *option, const char *text, void *options, char *why, size_t why_bytes);

/* "1 to 65500", "1 or more"; empty if the kind has no range or any value will do. */
void cli_range_text(const struct cli_option *option, char *out, size_t out_bytes);

/*
 * Is a file or folder one of this machine, and not a URL?  False with the reason; true for other
 * kinds.
 */
bool cli_value_is_here(const struct cli_option *option, const char *text, char *why, size_t why_bytes);

/* ---- cli_help.c: --help, and the man page ---- */

void cli_help_program(FILE *out, const struct cli_program *program);

/* `topic`: "" for the short help, "all", or the name of a topic that the verb has. */
void cli_help_verb(FILE *out, const struct cli_program *program, const struct cli_verb *verb, const char *topic);

/* Has an option of the verb this topic, or with NULL any? */
bool cli_has_topic(const struct cli_verb *verb, const char *topic);

void cli_man(FILE *out, const struct cli_program *program);

/* ---- cli_complete.c: completion in shells ---- */

/*
 * The script of a shell, which is the same for every program but for the name, asks the program
 * itself at each Tab: `PROGRAM --complete WORD...`, with the words from the verb to the cursor.
 */

/* Print the script of bash, zsh or fish.  False if the shell is another one. */
bool cli_complete_script(FILE *out, const struct cli_program *program, const char *shell);

/*
 * Print what may stand in the place of the last word, on a line each, with a tab and an explanation
 * behind it.  In the place of words this is one line: ":files" or ":dirs", of the user's; or ":value"
 * and what is explained, which only the user knows.  The shell leaves out what does not fit the
 * letters that are there.
 */
void cli_complete(FILE *out, const struct cli_program *program, char **word, int word_count);

#endif
