/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.h - a line of a manifest, taken apart word by word
 *
 * As base/words.h, but made for millions of lines, and for messages that name a rule.  It is used
 * for manifests, and for datasets, which take a shard's line apart again when the shard is wanted.
 * A scan remembers its first failure, M6 before M7, so a caller takes all words of a line and looks
 * once at the end.
 */
#ifndef SHARD_DISK_TOKENS_H
#define SHARD_DISK_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libshard/base/words.h"

enum token_fault { TOKEN_OK, TOKEN_FORM /* M6 */, TOKEN_NUMBER /* M7 */ };

struct tokens {
	const char *at, *end; /* the rest of the line, without its LF */
	enum token_fault fault;
	const char *wanted; /* for the message: the word or number that was not there */
};

/* M5 but for the length: bytes 0x20 to 0x7e, single spaces, none first or last, and not empty. */
bool tokens_line_good(const char *line, size_t bytes);

struct word tokens_take(struct tokens *t, const char *wanted); /* any word */
bool tokens_peek(const struct tokens *t, const char *literal); /* is the next word this one? */
uint64_t tokens_number(struct tokens *t, const char *wanted, uint64_t limit);
void tokens_number128(struct tokens *t, const char *wanted, uint64_t *low, uint64_t *high);
void tokens_hex(struct tokens *t, const char *wanted, uint8_t *out, size_t bytes);
void tokens_hash(struct tokens *t, const char *wanted, uint8_t hash[16]); /* 32 digits, to H128 as it is stored */
void tokens_done(struct tokens *t);					  /* nothing may be left */

/*
 * H128 from the order in which its digits are written, high half first, to the order in which it is
 * stored; or back.
 */
void hash_turn(uint8_t out[16], const uint8_t in[16]);

/*
 * Is `c` inside a word?  That is true of 0x21 to 0x7f.  M5 has checked that only a space or the
 * line's end comes between words, so this does not check it again.
 */
static inline bool tokens_in_word(char c)
{
	return (int8_t)c > ' ';
}

/*
 * Exactly this word.  Here, so that the compiler knows its length; all but the usual case is left
 * to the other function.
 */
void tokens_literal_other(struct tokens *t, const char *literal);
static inline void tokens_literal(struct tokens *t, const char *literal)
{
	size_t bytes = strlen(literal);

	if ((size_t)(t->end - t->at) > bytes + 1 && !memcmp(t->at, literal, bytes) && t->at[bytes] == ' ' &&
	    tokens_in_word(t->at[bytes + 1]))
		t->at += bytes + 1;
	else
		tokens_literal_other(t, literal);
}

/* Canonical decimal: no sign, no leading zero, at most `limit`. */
bool word_number(struct word w, uint64_t limit, uint64_t *out);

#endif
