/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.c - the longer helpers of bytes.h
 */
#include "libshard/base/bytes.h"

size_t first_nonzero(const void *p, size_t bytes)
{
	const uint8_t *b = p;
	size_t i = 0;
	uint64_t word[4];

	for (; bytes - i >= sizeof(word); i += sizeof(word)) {
		memcpy(word, b + i, sizeof(word));
		if (word[0] | word[1] | word[2] | word[3])
			break;
	}
	while (i < bytes && !b[i])
		i++;
	return i;
}

size_t utf8_length(const uint8_t *p, size_t left)
{
	uint32_t c, least;
	size_t n;

	if (!left)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if ((p[0] & 0xe0) == 0xc0)
		n = 2, c = p[0] & 0x1fu, least = 0x80;
	else if ((p[0] & 0xf0) == 0xe0)
		n = 3, c = p[0] & 0x0fu, least = 0x800;
	else if ((p[0] & 0xf8) == 0xf0)
		n = 4, c = p[0] & 0x07u, least = 0x10000;
	else
		return 0;
	if (left < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	return c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

size_t utf8_bad(const void *p, size_t bytes)
{
	const uint8_t *b = p;
	size_t i = 0, n;

	while (i < bytes) {
		if (!b[i])
			return i;
		n = utf8_length(b + i, bytes - i);
		if (!n)
			return i;
		i += n;
	}
	return bytes;
}

void hex_from_bytes(char *text, const uint8_t *p, size_t bytes)
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < bytes; i++) {
		*text++ = digit[p[i] >> 4];
		*text++ = digit[p[i] & 15];
	}
	*text = 0;
}

/* 1 + the value of a lower-case digit, 0 for anything else; a table, because manifests are mostly digits. */
static const uint8_t hex_value[256] = {
	['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8,
	['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

bool hex_to_bytes(uint8_t *p, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		unsigned high = hex_value[(uint8_t)text[2 * i]], low = high ? hex_value[(uint8_t)text[2 * i + 1]] : 0;

		if (!low)
			return false;
		p[i] = (uint8_t)((high - 1) << 4 | (low - 1));
	}
	return true;
}
