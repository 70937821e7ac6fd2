/* SPDX-License-Identifier: Apache-2.0 */
/*
 * human.c - what people read on a terminal: rounded numbers, escaped names, wrapped lines
 *
 * Pure, but for what writes to a stream.  Sizes and durations round to the nearest shown digit, and a
 * value that rounds up to the next unit is shown in that unit: never "1024.0 KiB", never "60 s".
 */
#include "tools/common/human.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/utf8.h"

#define NS_PER_SECOND  UINT64_C(1000000000)
#define PIECE_CHARS    12 /* "\U000e0001" and its NUL is 11 */
#define SCREEN_COLUMNS 79 /* some terminals wrap at the 80th */

const char *human_bytes(char out[HUMAN_CHARS], uint64_t bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	uint64_t unit = 1, whole, tenth;
	unsigned name_idx = 0;

	if (bytes < 1024) {
		snprintf(out, HUMAN_CHARS, "%" PRIu64 " B", bytes);
		return out;
	}
	while (name_idx < 6 && bytes / unit >= 1024) {
		unit *= 1024;
		name_idx++;
	}
	whole = bytes / unit;
	tenth = (bytes % unit * 10 + unit / 2) / unit; /* unit is at most 2^60: times 10 fits */
	if (tenth == 10) {
		whole++;
		tenth = 0;
	}
	if (whole == 1024 && name_idx < 6) {
		whole = 1;
		name_idx++;
	}
	snprintf(out, HUMAN_CHARS, "%" PRIu64 ".%" PRIu64 " %s", whole, tenth, names[name_idx]);
	return out;
}

const char *human_count(char out[HUMAN_CHARS], uint64_t count)
{
	char digits[24];
	int digit_count = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = out;

	for (int i = 0; i < digit_count; i++) {
		if (i && (digit_count - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = 0;
	return out;
}

const char *human_duration(char out[HUMAN_CHARS], uint64_t duration_ns)
{
	uint64_t tenths =
		duration_ns / (NS_PER_SECOND / 10) + (duration_ns % (NS_PER_SECOND / 10) >= NS_PER_SECOND / 20);
	uint64_t seconds = (tenths + 5) / 10;
	uint64_t minutes = (seconds + 30) / 60;

	if (tenths < 100)
		snprintf(out, HUMAN_CHARS, "%" PRIu64 ".%" PRIu64 " s", tenths / 10, tenths % 10);
	else if (seconds < 60)
		snprintf(out, HUMAN_CHARS, "%" PRIu64 " s", seconds);
	else if (seconds < 3600)
		snprintf(out, HUMAN_CHARS, "%" PRIu64 "m %02" PRIu64 "s", seconds / 60, seconds % 60);
	else if (minutes < 100 * 60)
		snprintf(out, HUMAN_CHARS, "%" PRIu64 "h %02" PRIu64 "m", minutes / 60, minutes % 60);
	else
		snprintf(out, HUMAN_CHARS, "%" PRIu64 "d %02" PRIu64 "h", minutes / 1440, minutes % 1440 / 60);
	return out;
}

/* Rates come from divisions: what is not a positive number is shown as 0. */
static uint64_t rounded(double value)
{
	if (!(value > 0))
		return 0;
	return value < 1.8e19 ? (uint64_t)(value + 0.5) : UINT64_MAX;
}

const char *human_rate(char out[HUMAN_CHARS], double per_second)
{
	if (per_second > 0 && per_second < 9.95) {
		snprintf(out, HUMAN_CHARS, "%.1f/s", per_second);
	} else {
		human_count(out, rounded(per_second));
		strcat(out, "/s");
	}
	return out;
}

const char *human_byte_rate(char out[HUMAN_CHARS], double bytes_per_second)
{
	human_bytes(out, rounded(bytes_per_second));
	strcat(out, "/s");
	return out;
}

/* ---- names and keys from elsewhere, made safe for a terminal ---- */

/*
 * One function turns the next character of the input into at most PIECE_CHARS of output; both
 * writers are loops over it.  Octal has exactly three digits and \u and \U exactly four and eight, so
 * that a digit that follows is not swallowed.
 */

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

/* ---- lines of a screen ---- */

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
