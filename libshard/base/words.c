/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c - see words.h
 */
#include "libshard/base/words.h"

#include <string.h>

#include "libshard/base/digits.h"

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
