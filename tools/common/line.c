/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - the lines of a text file, one after the other, none longer than a limit
 */
#include "tools/common/line.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"

int line_next(struct line *l, FILE *in, const char *name, const char *what)
{
	int c;

	l->bytes = 0;
	while ((c = getc(in)) != EOF && c != '\n') {
		if (l->bytes == LINE_BYTES_MAX)
			return fail(EXIT_BAD, "%s, line %" PRIu64 ": longer than the limit of %d bytes; must be %s",
				    name, l->number + 1, LINE_BYTES_MAX, what);
		l->text[l->bytes++] = (char)c;
	}
	if (c == EOF && ferror(in))
		return fail(EXIT_IO, "%s: %s", name, strerror(errno));
	l->text[l->bytes] = '\0';
	l->is_end = c == EOF && !l->bytes;
	l->number += !l->is_end;
	return EXIT_DONE;
}
