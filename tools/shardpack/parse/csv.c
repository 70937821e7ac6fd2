/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - rows of a table in text: CSV as RFC 4180 has it, the same with semicolons, or TSV
 */
#include "tools/shardpack/parse/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/utf8.h"

char csv_separator(const char *text, size_t bytes)
{
	bool quoted = false, any = false, semicolon = false;

	for (size_t i = 0; i < bytes; i++) {
		quoted = quoted != (text[i] == '"');
		if (quoted)
			continue;
		if (text[i] == ',')
			return ',';
		semicolon = semicolon || text[i] == ';';
		if (text[i] == '\n' && any)
			break;
		any = any || (text[i] != '\n' && text[i] != '\r'); /* empty lines are not rows */
	}
	return semicolon ? ';' : ',';
}

void csv_start(struct csv *c, char *text, size_t bytes, char separator)
{
	*c = (struct csv){.at = text + utf8_mark(text, bytes), .end = text + bytes, .separator = separator, .line = 1};
}

/* LF or CRLF at `at`: how many bytes, 0 if neither. */
static size_t line_end(const struct csv *c, const char *at)
{
	if (at < c->end && *at == '\n')
		return 1;
	return c->end - at >= 2 && at[0] == '\r' && at[1] == '\n' ? 2 : 0;
}

/*
 * NULL, or what is wrong.  *next is behind the field; what it points to is a separator, a line's
 * end, or the end.
 */
static const char *take_quoted(struct csv *c, char **next)
{
	char *from = c->at + 1, *to = c->at;

	for (;; from++) {
		if (from == c->end)
			return "a quote is not closed";
		if (*from == '\0')
			return "a NUL byte";
		if (*from == '\n')
			c->line++;
		if (*from == '"' && (from + 1 == c->end || from[1] != '"'))
			break;
		from += *from == '"'; /* two of them are one */
		*to++ = *from;
	}
	*next = from + 1;
	if (*next < c->end && **next != c->separator && !line_end(c, *next))
		return "text follows a closing quote";
	*to = '\0'; /* at the latest where the closing quote was */
	return NULL;
}

static const char *take_plain(struct csv *c, char **next)
{
	char *at = c->at;

	while (at < c->end && *at != c->separator && !line_end(c, at)) {
		if (*at == '\0')
			return "a NUL byte";
		if (*at == '\r')
			return "a carriage return without a line feed";
		if (*at == '"' && c->separator != '\t')
			return "a quote within a field; quote the whole field, and write the quote twice";
		at++;
	}
	*next = at;
	return NULL;
}

enum csv_status csv_next(struct csv *c, struct csv_row *row, char *why, size_t why_bytes)
{
	const char *wrong = NULL;
	char *next = NULL;
	size_t n;

	while (c->at < c->end && (n = line_end(c, c->at)) > 0) {
		c->at += n;
		c->line++;
	}
	row->line = c->line;
	row->count = 0;
	if (c->at == c->end)
		return CSV_END;
	for (;;) {
		uint64_t line = c->line;
		bool last;

		if (row->count == CSV_FIELDS_MAX) {
			snprintf(why, why_bytes, "line %" PRIu64 ": more than %d fields", row->line, CSV_FIELDS_MAX);
			return CSV_BAD;
		}
		row->field[row->count++] = c->at;
		wrong = c->separator != '\t' && c->at < c->end && *c->at == '"' ? take_quoted(c, &next)
										: take_plain(c, &next);
		/*
		 * an open quote swallows the rest of the file, so the line is that where the field
		 * begins
		 */
		if (wrong) {
			snprintf(why, why_bytes, "line %" PRIu64 ": field %" PRIu32 ": %s", line, row->count, wrong);
			return CSV_BAD;
		}
		n = line_end(c, next);
		last = n || next == c->end;
		*next = '\0';
		c->at = next + (next == c->end ? 0 : n ? n : 1);
		if (last) {
			c->line += n > 0;
			return CSV_ROW;
		}
	}
}
