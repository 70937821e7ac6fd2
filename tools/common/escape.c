/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape.c - names and keys from elsewhere, made safe for a terminal
 *
 * Pure but for escape_write().  One function turns the next character of the input into at
 * most PIECE_CHARS of output; both writers are loops over it.  Octal has exactly three
 * digits and \u and \U exactly four and eight, so that a digit that follows is not swallowed.
 */
#include "tools/common/escape.h"

#include <string.h>

#include "libshard/base/utf8.h"

#define PIECE_CHARS 12 /* "\U000e0001" and its NUL is 11 */

/* How many bytes from here on are printable ASCII that no mode escapes. */
static size_t plain_run(const char *text, size_t text_bytes)
{
	size_t i = 0;

	while (i < text_bytes && text[i] >= 0x20 && text[i] < 0x7f && text[i] != '\\')
		i++;
	return i;
}

/* Write the next character of `text`, escaped if need be; returns how many bytes it took. */
static size_t next_piece(char piece[PIECE_CHARS], const char *text, size_t text_bytes, enum escape_mode mode)
{
	static const char named[] = "abtnvfr"; /* bytes 7 to 13 */
	unsigned char first = (unsigned char)text[0];
	uint32_t code_point;
	size_t length = utf8_character(text, text_bytes, &code_point);

	if (first >= 7 && first <= 13)
		snprintf(piece, PIECE_CHARS, "\\%c", named[first - 7]);
	else if (!length || first < 0x20 || first == 0x7f)
		snprintf(piece, PIECE_CHARS, "\\%03o", first);
	else if (first == '\\' && mode == ESCAPE_EXACT)
		strcpy(piece, "\\\\");
	else if (utf8_is_hidden(code_point))
		snprintf(piece, PIECE_CHARS, code_point < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)code_point);
	else
		snprintf(piece, PIECE_CHARS, "%.*s", (int)length, text);
	return length ? length : 1;
}

size_t escape_text(char *out, size_t out_bytes, const char *text, size_t text_bytes, enum escape_mode mode)
{
	char piece[PIECE_CHARS];
	size_t needed = 0, used = 0, taken;
	bool full = false;

	for (size_t i = 0; i < text_bytes; i += taken) {
		size_t length;

		taken = next_piece(piece, text + i, text_bytes - i, mode);
		length = strlen(piece);
		needed += length;
		full = full || length >= out_bytes - used; /* a byte stays for the NUL */
		if (!full) {
			memcpy(out + used, piece, length);
			used += length;
		}
	}
	if (out_bytes)
		out[used] = 0;
	return needed;
}

void escape_write(FILE *out, const char *text, size_t text_bytes, enum escape_mode mode)
{
	char piece[PIECE_CHARS];

	for (size_t i = 0; i < text_bytes;) {
		size_t plain = plain_run(text + i, text_bytes - i);

		if (plain) { /* nearly every key is nothing but this */
			fwrite(text + i, 1, plain, out);
			i += plain;
		} else {
			i += next_piece(piece, text + i, text_bytes - i, mode);
			fputs(piece, out);
		}
	}
}
