/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.c - a line of a manifest, taken apart word by word
 *
 * As base/words.h, but made for millions of lines, and for messages that name a rule.  It is used
 * for manifests, and for datasets, which take a shard's line apart again when the shard is wanted.
 * A scan remembers its first failure, M6 before M7, so a caller takes all words of a line and looks
 * once at the end.
 *
 * Opening a large dataset waits until millions of bytes have passed through here, so what
 * asks every byte the same question asks many at once.
 */
#include "libshard/format/format.h"

#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/words.h"

/* The first one counts, but form (M6) stands before numbers (M7). */
static void fault(struct tokens *t, enum token_fault fault, const char *wanted)
{
	if (t->fault == TOKEN_OK || (t->fault == TOKEN_NUMBER && fault == TOKEN_FORM)) {
		t->fault = fault;
		t->wanted = wanted;
	}
}

bool tokens_line_good(const char *line, size_t bytes)
{
	bytes16 bad = {0}, x, next;
	uint64_t any[2];
	bool wrong = !bytes || line[0] == ' ' || line[bytes - 1] == ' ';
	size_t i = 0;

	for (; bytes - i > sizeof(x); i += sizeof(x)) { /* no branch, and the same question as below */
		memcpy(&x, line + i, sizeof(x));
		memcpy(&next, line + i + 1, sizeof(next));
		bad |= (bytes16)(x - 0x20 > 0x5e) | (bytes16)((x == ' ') & (next == ' '));
	}
	for (; i < bytes; i++)
		wrong |= (uint8_t)(line[i] - 0x20) > 0x5e || (line[i] == ' ' && i + 1 < bytes && line[i + 1] == ' ');
	memcpy(any, &bad, sizeof(any));
	return !wrong && !(any[0] | any[1]);
}

/*
 * Eight bytes at once: the top bit of each that is not in a word.  No sum reaches into the next
 * byte.
 */
static uint64_t not_in_word(uint64_t x)
{
	const uint64_t each = UINT64_C(0x0101010101010101), top = 0x80 * each;

	return (x | ~((x | top) - 0x21 * each)) & top;
}

static const char *word_end(const char *at, const char *end)
{
	for (; end - at >= 8; at += 8) {
		uint64_t ends = not_in_word(load64(at));

		if (ends)
			return at + __builtin_ctzll(ends) / 8;
	}
	while (at < end && tokens_in_word(*at))
		at++;
	return at;
}

/* M5 allows one space; this does not check that again. */
static const char *next_word(const char *at, const char *end)
{
	while (at < end && !tokens_in_word(*at))
		at++;
	return at;
}

struct word tokens_take(struct tokens *t, const char *wanted)
{
	struct word w = {t->at, 0};

	if (t->at == t->end)
		fault(t, TOKEN_FORM, wanted);
	t->at = word_end(t->at, t->end);
	w.bytes = (size_t)(t->at - w.text);
	t->at = next_word(t->at, t->end);
	return w;
}

/* Behind the next word if it is this one, NULL if it is another. */
static const char *after_literal(const struct tokens *t, const char *literal)
{
	const char *at = t->at;

	for (; *literal; literal++, at++)
		if (at == t->end || *at != *literal)
			return NULL;
	return at == t->end || !tokens_in_word(*at) ? at : NULL;
}

void tokens_literal_other(struct tokens *t, const char *literal)
{
	const char *at = after_literal(t, literal);

	if (at) {
		t->at = next_word(at, t->end);
	} else {
		tokens_take(t, literal);
		fault(t, TOKEN_FORM, literal);
	}
}

bool tokens_peek(const struct tokens *t, const char *literal)
{
	return after_literal(t, literal);
}

void hash_turn(uint8_t out[16], const uint8_t in[16])
{
	store64(out, __builtin_bswap64(load64(in + 8)));
	store64(out + 8, __builtin_bswap64(load64(in)));
}

bool word_number(struct word w, uint64_t limit, uint64_t *out)
{
	return text_u64(w.text, w.bytes, out) && *out <= limit;
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
	const unsigned __int128 max = ~(unsigned __int128)0;
	struct word w = tokens_take(t, wanted);
	bool good = w.bytes && w.bytes <= 39 && (w.bytes == 1 || w.text[0] != '0');
	unsigned __int128 v = 0;

	for (size_t i = 0; good && i < w.bytes; i++) {
		unsigned digit = (unsigned)(w.text[i] - '0');

		good = digit <= 9 && v <= (max - digit) / 10;
		v = v * 10 + digit;
	}
	if (!good) {
		fault(t, TOKEN_NUMBER, wanted);
		v = 0;
	}
	*low = (uint64_t)v;
	*high = (uint64_t)(v >> 64);
}

void tokens_hex(struct tokens *t, const char *wanted, uint8_t *out, size_t bytes)
{
	size_t left = (size_t)(t->end - t->at);

	if (left >= 2 * bytes && hex_to_bytes(out, t->at, bytes) &&
	    (left == 2 * bytes || !tokens_in_word(t->at[2 * bytes]))) {
		t->at = next_word(t->at + 2 * bytes, t->end);
	} else {
		tokens_take(t, wanted);
		fault(t, TOKEN_NUMBER, wanted);
	}
}

void tokens_hash(struct tokens *t, const char *wanted, uint8_t hash[16])
{
	uint8_t high_first[16] = {0};

	tokens_hex(t, wanted, high_first, sizeof(high_first));
	hash_turn(hash, high_first);
}

void tokens_done(struct tokens *t)
{
	if (t->at != t->end)
		fault(t, TOKEN_FORM, "the end of the line");
}
