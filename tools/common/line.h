/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - the lines of a text file, one after the other, none longer than a limit
 *
 * A file without a newline would otherwise be held whole before anybody sees that it is no list.
 */
#ifndef SHARD_COMMON_LINE_H
#define SHARD_COMMON_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LINE_BYTES_MAX 8192 /* more than any path or name may have */

struct line { /* zeroed before the first one */
	char text[LINE_BYTES_MAX + 1];
	size_t bytes;
	uint64_t number; /* from 1 on */
	bool is_end;	 /* there was no further line */
};

/*
 * The next line, without its newline and with a NUL behind it; the first one without a byte-order
 * mark.  A file in UTF-16 is refused.  Messages call the file `name`, and say that a line must be
 * `what`.  Returns the exit code.
 */
int line_next(struct line *l, FILE *in, const char *name, const char *what);

#endif
