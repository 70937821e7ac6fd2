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

/*
 * The value of a lower-case digit with the bit DIGIT, 0 for anything else; a table, because
 * manifests are mostly digits.
 */
#define DIGIT 0x10
static const uint8_t hex_value[256] = {
	['0'] = DIGIT | 0,  ['1'] = DIGIT | 1,	['2'] = DIGIT | 2,  ['3'] = DIGIT | 3,
	['4'] = DIGIT | 4,  ['5'] = DIGIT | 5,	['6'] = DIGIT | 6,  ['7'] = DIGIT | 7,
	['8'] = DIGIT | 8,  ['9'] = DIGIT | 9,	['a'] = DIGIT | 10, ['b'] = DIGIT | 11,
	['c'] = DIGIT | 12, ['d'] = DIGIT | 13, ['e'] = DIGIT | 14, ['f'] = DIGIT | 15,
};

/* Sixteen digits at once. */
static bool hex_to_8_bytes(uint8_t *p, const char *text)
{
	typedef uint16_t pairs __attribute__((vector_size(16)));
	typedef uint8_t bytes8 __attribute__((vector_size(8)));
	bytes16 x, decimal, letter;
	uint64_t all[2];
	pairs v;
	bytes8 out;

	memcpy(&x, text, sizeof(x));
	decimal = (bytes16)(x - '0' <= 9);
	letter = (bytes16)(x - 'a' <= 5);
	v = (pairs)((decimal & (x - '0')) | (letter & (x - 'a' + 10)));
	decimal |= letter;
	memcpy(all, &decimal, sizeof(all));
	out = __builtin_convertvector((v << 4 | v >> 8) & 0xff, bytes8);
	memcpy(p, &out, sizeof(out));
	return (all[0] & all[1]) == UINT64_MAX;
}

bool hex_to_bytes(uint8_t *p, const char *text, size_t bytes)
{
	unsigned all = DIGIT;
	size_t i = 0;

	for (; bytes - i >= 8 && hex_to_8_bytes(p + i, text + 2 * i); i += 8)
		;
	for (; i < bytes; i++) {
		unsigned high = hex_value[(uint8_t)text[2 * i]], low = hex_value[(uint8_t)text[2 * i + 1]];

		all &= high & low;
		p[i] = (uint8_t)(high << 4 | (low & 15));
	}
	return all == DIGIT;
}
