/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.h - text in a screen of 80 columns
 */
#ifndef SHARD_CLI_WRAP_H
#define SHARD_CLI_WRAP_H

#include <stddef.h>
#include <stdio.h>

/*
 * Print words from `column` on, and a line's end; lines that would pass the 79th column go on in
 * the next, at `indent`.
 */
void wrap(FILE *out, const char *text, size_t column, size_t indent);

#endif
