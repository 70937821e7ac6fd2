/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - the lines of a text file, one after the other, none longer than a limit
 */
#include "tools/common/line.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "libshard/base/utf8.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"

/* What editors elsewhere put in front of a text is not a part of its first line. */
static int drop_mark(struct line *l, const char *name)
{
	size_t mark = utf8_mark(l->text, l->bytes);

	if (utf8_is_utf16(l->text, l->bytes))
		return fail(EXIT_BAD, "%s: " UTF8_UTF16, name);
	l->bytes -= mark;
	memmove(l->text, l->text + mark, l->bytes + 1);
	return EXIT_DONE;
}

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
	return l->number == 1 && !l->is_end ? drop_mark(l, name) : EXIT_DONE;
}
