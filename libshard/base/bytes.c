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
