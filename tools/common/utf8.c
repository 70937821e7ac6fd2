/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.c - is it UTF-8, and which characters are they?
 */
#include "tools/common/utf8.h"

#include <string.h>

size_t utf8_sequence(const char *text, size_t text_bytes, uint32_t *code_point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* by length: no overlong forms */
	const unsigned char *in = (const unsigned char *)text;
	size_t length;
	uint32_t value;

	if (in[0] < 0x80) {
		*code_point = in[0];
		return 1;
	}
	if (in[0] >= 0xc2 && in[0] <= 0xdf) {
		length = 2;
		value = in[0] & 0x1f;
	} else if (in[0] >= 0xe0 && in[0] <= 0xef) {
		length = 3;
		value = in[0] & 0x0f;
	} else if (in[0] >= 0xf0 && in[0] <= 0xf4) {
		length = 4;
		value = in[0] & 0x07;
	} else {
		return 0;
	}
	if (length > text_bytes)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((in[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (in[i] & 0x3f);
	}
	if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 0;
	*code_point = value;
	return length;
}

size_t utf8_invalid_at(const char *text, size_t text_bytes)
{
	uint32_t code_point;
	size_t at = 0, length;

	while (at < text_bytes) {
		length = utf8_sequence(text + at, text_bytes - at, &code_point);
		if (!length)
			break;
		at += length;
	}
	return at;
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
