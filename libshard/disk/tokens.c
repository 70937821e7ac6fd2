/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.c - see tokens.h
 *
 * Pure.  Lines were checked for single spaces (M5) before they come here.
 */
#include "libshard/disk/tokens.h"

#include <string.h>

#include "libshard/base/bytes.h"

/* The first one counts, but form (M6) stands before numbers (M7). */
static void fault(struct tokens *t, enum token_fault fault, const char *wanted)
{
	if (t->fault == TOKEN_OK || (t->fault == TOKEN_NUMBER && fault == TOKEN_FORM)) {
		t->fault = fault;
		t->wanted = wanted;
	}
}

struct word tokens_take(struct tokens *t, const char *wanted)
{
	struct word w = {t->at, 0};

	if (t->at == t->end)
		fault(t, TOKEN_FORM, wanted);
	while (t->at < t->end && *t->at > ' ')
		t->at++;
	w.bytes = (size_t)(t->at - w.text);
	while (t->at < t->end && *t->at <= ' ') /* M5 allows one space; this is no second judge of it */
		t->at++;
	return w;
}

void tokens_literal(struct tokens *t, const char *literal)
{
	struct word w = tokens_take(t, literal);

	if (w.bytes != strlen(literal) || memcmp(w.text, literal, w.bytes))
		fault(t, TOKEN_FORM, literal);
}

bool tokens_peek(const struct tokens *t, const char *literal)
{
	struct tokens copy = *t;
	struct word w = tokens_take(&copy, literal);

	return w.bytes == strlen(literal) && !memcmp(w.text, literal, w.bytes);
}

static bool word_number128(struct word w, unsigned __int128 *out)
{
	const unsigned __int128 max = ~(unsigned __int128)0;
	unsigned __int128 v = 0;

	if (!w.bytes || w.bytes > 39 || (w.bytes > 1 && w.text[0] == '0'))
		return false;
	for (size_t i = 0; i < w.bytes; i++) {
		unsigned digit = (unsigned)(w.text[i] - '0');

		if (digit > 9 || v > (max - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*out = v;
	return true;
}

bool word_number(struct word w, uint64_t limit, uint64_t *out)
{
	uint64_t v = 0;

	if (!w.bytes || w.bytes > 20 || (w.bytes > 1 && w.text[0] == '0'))
		return false;
	for (size_t i = 0; i < w.bytes; i++) {
		unsigned digit = (unsigned)(w.text[i] - '0');

		if (digit > 9 || v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*out = v;
	return v <= limit;
}

uint64_t tokens_number(struct tokens *t, const char *wanted, uint64_t limit)
{
	uint64_t v = 0;

	if (!word_number(tokens_take(t, wanted), limit, &v))
		fault(t, TOKEN_NUMBER, wanted);
	return v;
}

void tokens_number128(struct tokens *t, const char *wanted, uint64_t *low, uint64_t *high)
{
	unsigned __int128 v = 0;

	if (!word_number128(tokens_take(t, wanted), &v))
		fault(t, TOKEN_NUMBER, wanted);
	*low = (uint64_t)v;
	*high = (uint64_t)(v >> 64);
}

void tokens_hex(struct tokens *t, const char *wanted, uint8_t *out, size_t bytes)
{
	struct word w = tokens_take(t, wanted);

	if (w.bytes != 2 * bytes || !hex_to_bytes(out, w.text, bytes))
		fault(t, TOKEN_NUMBER, wanted);
}

void tokens_done(struct tokens *t)
{
	if (t->at != t->end)
		fault(t, TOKEN_FORM, "the end of the line");
}
