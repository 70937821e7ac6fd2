/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.c - is it UTF-8, and which characters are they?
 */
#include "libshard/base/utf8.h"

#include <string.h>

size_t utf8_character(const void *text, size_t text_bytes, uint32_t *code_point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* by length: no overlong forms */
	const uint8_t *in = text;
	size_t length;
	uint32_t value;

	if (!text_bytes)
		return 0;
	if (in[0] < 0x80) {
		*code_point = in[0];
		return 1;
	}
	if ((in[0] & 0xe0) == 0xc0)
		length = 2;
	else if ((in[0] & 0xf0) == 0xe0)
		length = 3;
	else if ((in[0] & 0xf8) == 0xf0)
		length = 4;
	else
		return 0;
	if (text_bytes < length)
		return 0;
	value = in[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((in[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (in[i] & 0x3fu);
	}
	if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 0;
	*code_point = value;
	return length;
}

size_t utf8_bad(const void *text, size_t text_bytes)
{
	const uint8_t *in = text;
	uint32_t code_point;
	size_t at = 0, length;

	while ((length = utf8_character(in + at, text_bytes - at, &code_point)) > 0)
		at += length;
	return at;
}

size_t utf8_bad_or_nul(const void *text, size_t text_bytes)
{
	return utf8_bad(text, text_bytes ? strnlen(text, text_bytes) : 0);
}

/*
 * The zero-width joiner and non-joiner, U+200C and U+200D, are missing on purpose: words in Persian
 * and many emoji need them.
 */
const struct utf8_range utf8_hidden[UTF8_HIDDEN_RANGES] = {
	{0x00, 0x1f},	    /* C0 controls */
	{0x7f, 0x9f},	    /* DEL, and C1 controls: U+009B is ESC [ in one character */
	{0x061c, 0x061c},   /* Arabic letter mark */
	{0x180e, 0x180e},   /* Mongolian vowel separator */
	{0x200b, 0x200b},   /* zero-width space */
	{0x200e, 0x200f},   /* left-to-right and right-to-left marks */
	{0x2028, 0x202e},   /* line and paragraph separators; embeddings and overrides */
	{0x2060, 0x206f},   /* invisible operators; isolates */
	{0xfeff, 0xfeff},   /* byte order mark */
	{0xfff9, 0xfffb},   /* interlinear annotation */
	{0xe0000, 0xe007f}, /* tags */
};

bool utf8_is_hidden(uint32_t code_point)
{
	for (size_t i = 0; i < UTF8_HIDDEN_RANGES; i++)
		if (code_point >= utf8_hidden[i].first && code_point <= utf8_hidden[i].last)
			return true;
	return false;
}

size_t utf8_mark(const char *text, size_t text_bytes)
{
	return text_bytes >= UTF8_MARK_BYTES && !memcmp(text, "\xEF\xBB\xBF", UTF8_MARK_BYTES) ? UTF8_MARK_BYTES : 0;
}

bool utf8_is_utf16(const char *text, size_t text_bytes)
{
	if (text_bytes < 2)
		return false;
	return !memcmp(text, "\xFF\xFE", 2) || !memcmp(text, "\xFE\xFF", 2) || !text[0] != !text[1];
}
