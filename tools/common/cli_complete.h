/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_complete.h - completion in shells, from the tables
 *
 * The script of a shell, which is the same for every program but for the name, asks the program
 * itself at each Tab: `PROGRAM --complete WORD...`, with the words from the verb to the cursor.
 */
#ifndef SHARD_CLI_CLI_COMPLETE_H
#define SHARD_CLI_CLI_COMPLETE_H

#include "tools/common/cli_table.h"

/* Print the script of bash, zsh or fish.  False if the shell is another one. */
bool cli_complete_script(FILE *out, const struct cli_program *program, const char *shell);

/*
 * Print what may stand in the place of the last word, on a line each, with a tab and an explanation
 * behind it.  In the place of words this is one line: ":files" or ":dirs", of the user's; or ":value"
 * and what is explained, of which nobody can know any.  The shell leaves out what does not fit the
 * letters that are there.
 */
void cli_complete(FILE *out, const struct cli_program *program, char **word, int word_count);

#endif
