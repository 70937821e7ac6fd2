/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.c - see wrap.h
 */
#include "tools/common/wrap.h"

#include <stdbool.h>
#include <string.h>

#define SCREEN_COLUMNS 79 /* some terminals wrap at the 80th */

void wrap(FILE *out, const char *text, size_t column, size_t indent)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " ");

		if (!first && column + 1 + length > SCREEN_COLUMNS) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, length, out);
		column += length;
		text += length;
		text += strspn(text, " ");
		first = false;
	}
	fputc('\n', out);
}
