/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - text in memory, and what is read out of it: numbers, names, paths, lines
 */
#include "tools/common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libshard/base/utf8.h"
#include "shard_pack.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"

#define END_BYTES (strlen("end ") + 64 + strlen("\n"))

/* Room for `more` bytes and a NUL; false if a file has no room for them. */
static bool reserve(struct text *t, size_t more)
{
	char *data;

	if (more > SIZE_MAX / 8 || t->bytes > SIZE_MAX / 8)
		exit_without_memory(SIZE_MAX / 8);
	if (t->failed)
		return false;
	if (t->bytes + more < t->capacity_bytes)
		return true;
	data = shelf_grow(t->shelf, t->data, &t->capacity_bytes, t->bytes + more + 1);
	if (!data) {
		t->failed = true;
		return false;
	}
	t->data = data;
	return true;
}

void text_add(struct text *t, const void *data, size_t bytes)
{
	if (!reserve(t, bytes))
		return;
	if (bytes)
		memcpy(t->data + t->bytes, data, bytes);
	t->bytes += bytes;
	t->data[t->bytes] = '\0';
}

void text_put_before(struct text *t, const struct text *head)
{
	if (head->failed || !reserve(t, head->bytes)) {
		t->failed = true;
		return;
	}
	memmove(t->data + head->bytes, t->data, t->bytes);
	memcpy(t->data, head->data, head->bytes);
	t->bytes += head->bytes;
	t->data[t->bytes] = '\0';
}

void text_format(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int length;

	va_start(ap, fmt);
	length = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (length < 0)
		exit_without_memory(strlen(fmt));
	if (!reserve(t, (size_t)length))
		return;
	va_start(ap, fmt);
	vsnprintf(t->data + t->bytes, (size_t)length + 1, fmt, ap);
	va_end(ap);
	t->bytes += (size_t)length;
}

void text_hex(struct text *t, const uint8_t *data, size_t bytes)
{
	if (!reserve(t, 2 * bytes))
		return;
	hex_from_bytes(t->data + t->bytes, data, bytes);
	t->bytes += 2 * bytes;
}

void text_encode(struct text *t, const char *data, size_t bytes, bool slash)
{
	if (!reserve(t, 3 * bytes))
		return;
	t->bytes += percent_encode(t->data + t->bytes, data, bytes, slash);
}

bool text_failed(const struct text *t)
{
	return t->failed;
}

void text_free(struct text *t)
{
	shelf_free(t->shelf, t->data);
	memset(t, 0, sizeof(*t));
}

void text_shell_word(struct text *t, const char *word)
{
	bool plain = word[0] != '\0' && word[0] != '~';

	for (const char *c = word; *c; c++)
		if (!percent_is_plain(*c, true) && *c != ',' && *c != ':' && *c != '=' && *c != '%' && *c != '+' &&
		    *c != '@')
			plain = false;
	if (plain) {
		text_add(t, word, strlen(word));
		return;
	}
	text_add(t, "'", 1);
	for (const char *c = word; *c; c++) {
		if (*c == '\'')
			text_add(t, "'\\''", 4);
		else
			text_add(t, c, 1);
	}
	text_add(t, "'", 1);
}

bool text_stays_below(const char *path)
{
	size_t bytes;

	for (;; path += bytes + 1) {
		bytes = strcspn(path, "/");
		if (!bytes || (bytes == 1 && path[0] == '.') || (bytes == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[bytes])
			return true;
	}
}

bool text_settle_path(const char *path, size_t bytes, char *out, size_t room)
{
	size_t at = 0, used = 0, n;

	if (!bytes || path[0] == '/' || memchr(path, '\0', bytes))
		return false;
	for (; at < bytes; at += n + 1) {
		const char *part = path + at, *slash = memchr(part, '/', bytes - at);

		n = slash ? (size_t)(slash - part) : bytes - at;
		if (!n || (n == 1 && part[0] == '.'))
			continue;
		if ((n == 2 && part[0] == '.' && part[1] == '.') || used + n + 2 > room)
			return false;
		if (used)
			out[used++] = '/';
		memcpy(out + used, part, n);
		used += n;
	}
	out[used] = '\0';
	return true;
}

bool text_is_name(const char *data, size_t bytes, size_t bytes_max)
{
	return bytes && bytes <= bytes_max && utf8_bad_or_nul(data, bytes) == bytes;
}

void text_double(char out[TEXT_DOUBLE_CHARS], double value)
{
	int digits = 15;

	do {
		snprintf(out, TEXT_DOUBLE_CHARS, "%.*g", digits, value);
	} while (digits++ < 17 && strtod(out, NULL) != value);
}

/* Moves *at past the digits, of which there may be none. */
static size_t pass_digits(const char **at, const char *end)
{
	const char *start = *at;

	while (*at < end && **at >= '0' && **at <= '9')
		(*at)++;
	return (size_t)(*at - start);
}

bool text_is_decimal(const char *in, size_t in_bytes, bool words)
{
	static const char *const names[] = {"inf", "infinity", "nan"};
	const char *end = in + in_bytes;
	size_t digits;

	in += in < end && *in == '-';
	for (size_t i = 0; words && i < sizeof(names) / sizeof(names[0]); i++)
		if ((size_t)(end - in) == strlen(names[i]) && !strncasecmp(in, names[i], strlen(names[i])))
			return true;
	digits = pass_digits(&in, end);
	if (in < end && *in == '.') {
		in++;
		digits += pass_digits(&in, end);
	}
	if (digits && in < end && (*in == 'e' || *in == 'E')) {
		in++;
		in += in < end && (*in == '-' || *in == '+');
		digits = pass_digits(&in, end);
	}
	return digits && in == end;
}

bool text_parse_double(const char *in, size_t in_bytes, double *out)
{
	if (!text_is_decimal(in, in_bytes, false))
		return false;
	*out = strtod(in, NULL);
	return isfinite(*out);
}

bool text_i64(const char *in, size_t in_bytes, int64_t *out)
{
	const char *at = in + (in_bytes && in[0] == '-');

	if (!pass_digits(&at, in + in_bytes) || at != in + in_bytes)
		return false;
	errno = 0;
	*out = strtoll(in, NULL, 10);
	return !errno;
}

uint32_t text_named(enum shard_name_of what, const char *word, size_t bytes, uint32_t first)
{
	const char *name;

	for (uint32_t i = first; (name = shard_name(what, i)) != NULL; i++)
		if (strlen(name) == bytes && !memcmp(name, word, bytes))
			return i;
	return TEXT_NO_NAME;
}

/* ---- the last line of a small file ---- */

void text_add_end(struct text *t)
{
	uint8_t digest[32] = {0};

	if (!text_failed(t))
		shard_sha256(t->data, t->bytes, digest);
	text_add(t, "end ", 4);
	text_hex(t, digest, sizeof(digest));
	text_add(t, "\n", 1);
}

bool text_cut_end(struct text *t)
{
	uint8_t said[32], is[32];
	const char *end;

	if (t->bytes <= END_BYTES)
		return false;
	end = t->data + t->bytes - END_BYTES;
	if (memcmp(end, "end ", 4) || !text_unhex(end + 4, 64, said, 32) || end[68] != '\n')
		return false;
	t->bytes -= END_BYTES;
	t->data[t->bytes] = '\0';
	shard_sha256(t->data, t->bytes, is);
	return !memcmp(said, is, 32);
}

/* ---- the lines of a text file ---- */

int line_next(struct line *l, FILE *in, const char *name, const char *what)
{
	size_t mark;
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
	if (l->is_end || l->number > 1)
		return EXIT_DONE;
	if (utf8_is_utf16(l->text, l->bytes))
		return fail(EXIT_BAD, "%s: " UTF8_UTF16, name);
	mark = utf8_mark(l->text, l->bytes); /* which editors elsewhere put in front of a text */
	l->bytes -= mark;
	memmove(l->text, l->text + mark, l->bytes + 1);
	return EXIT_DONE;
}
