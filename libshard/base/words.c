/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c - words of a text: how they are spelled, and how a text is taken apart into them
 */
#include "libshard/base/words.h"

#include <stddef.h>
#include <string.h>

#include "libshard/base/bytes.h"

/* ---- decimal ---- */

bool text_u64(const char *in, size_t in_bytes, uint64_t *out)
{
	uint64_t value = 0;

	if (!in_bytes || in_bytes > 20 || (in_bytes > 1 && in[0] == '0'))
		return false;
	for (size_t i = 0; i < in_bytes; i++) {
		unsigned digit = (unsigned)(in[i] - '0');

		if (digit > 9 || !mul_fits(value, 10, &value) || !add_fits(value, digit, &value))
			return false;
	}
	*out = value;
	return true;
}

/* ---- hexadecimal ---- */

static const char hex_lower[] = "0123456789abcdef";

void hex_from_bytes(char *text, const uint8_t *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		*text++ = hex_lower[p[i] >> 4];
		*text++ = hex_lower[p[i] & 15];
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

/* ---- percent-encoding ---- */

static const char hex_upper[] = "0123456789ABCDEF";

/* By hand, since <ctype.h> asks the locale. */
bool percent_is_plain(char c, bool slash)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '~' || c == '-' || (slash && c == '/');
}

size_t percent_encode(char *out, const char *in, size_t in_bytes, bool slash)
{
	char *at = out;

	for (size_t i = 0; i < in_bytes; i++) {
		if (percent_is_plain(in[i], slash)) {
			*at++ = in[i];
			continue;
		}
		*at++ = '%';
		*at++ = hex_upper[(uint8_t)in[i] >> 4];
		*at++ = hex_upper[(uint8_t)in[i] & 15];
	}
	*at = 0;
	return (size_t)(at - out);
}

static int nibble_of(char c)
{
	const char *at = c ? strchr(hex_upper, c) : NULL;

	return at ? (int)(at - hex_upper) : -1;
}

long text_decode(const char *in, size_t in_bytes, bool slash, char *out)
{
	size_t n = 0;
	int high, low;

	for (size_t i = 0; i < in_bytes; i++) {
		if (in[i] != '%') {
			if (!percent_is_plain(in[i], slash))
				return -1;
			out[n++] = in[i];
			continue;
		}
		if (in_bytes - i < 3)
			return -1;
		high = nibble_of(in[i + 1]);
		low = nibble_of(in[i + 2]);
		if (high < 0 || low < 0 || percent_is_plain((char)(high * 16 + low), slash) || high + low == 0)
			return -1;
		out[n++] = (char)(high * 16 + low);
		i += 2;
	}
	out[n] = '\0';
	return (long)n;
}

/* ---- URLs ---- */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

bool text_is_url(const char *text)
{
	size_t letters = strspn(text, LETTERS), bytes = strspn(text, LETTERS "0123456789+.-");

	return letters && bytes > 1 && !strncmp(text + bytes, "://", 3);
}

/* ---- a text, from its beginning ---- */

bool words_line(struct words *c, struct words *line)
{
	const char *lf = c->at ? memchr(c->at, '\n', (size_t)(c->end - c->at)) : NULL;

	if (!lf)
		return false;
	*line = (struct words){c->at, lf};
	c->at = lf + 1;
	return true;
}

bool words_take(struct words *c, char separator, struct word *out)
{
	const char *stop = c->at ? memchr(c->at, separator, (size_t)(c->end - c->at)) : NULL;

	if (!c->at)
		return false;
	*out = (struct word){c->at, (size_t)((stop ? stop : c->end) - c->at)};
	c->at = stop ? stop + 1 : NULL;
	return true;
}

bool word_is(struct word w, const char *literal)
{
	return strlen(literal) == w.bytes && !memcmp(w.text, literal, w.bytes);
}

bool words_is(struct words *c, char separator, const char *literal)
{
	struct words next = *c;
	struct word w;

	if (!words_take(&next, separator, &w) || !word_is(w, literal))
		return false;
	*c = next;
	return true;
}

bool words_u64(struct words *c, char separator, uint64_t most, uint64_t *out)
{
	struct words next = *c;
	uint64_t value;
	struct word w;

	if (!words_take(&next, separator, &w) || !text_u64(w.text, w.bytes, &value) || value > most)
		return false;
	*out = value;
	*c = next;
	return true;
}

bool words_hex(struct words *c, char separator, uint8_t *out, size_t bytes)
{
	struct words next = *c;
	struct word w;

	if (!words_take(&next, separator, &w) || w.bytes != 2 * bytes || !hex_to_bytes(out, w.text, bytes))
		return false;
	*c = next;
	return true;
}

struct word words_rest(const struct words *c)
{
	return (struct word){c->at ? c->at : c->end, c->at ? (size_t)(c->end - c->at) : 0};
}
