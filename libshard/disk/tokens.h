/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.h - a line of a manifest, taken apart word by word
 *
 * Private to the manifest's two files.  A scan remembers its first failure, M6 before M7, so a caller takes all words of a line and
 * looks once at the end.
 */
#ifndef LIBSHARD_DISK_TOKENS_H
#define LIBSHARD_DISK_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_fault { TOKEN_OK, TOKEN_FORM /* M6 */, TOKEN_NUMBER /* M7 */ };

struct tokens {
	const char *at, *end; /* what is left of the line, without its LF */
	enum token_fault fault;
	const char *wanted; /* for the message: the word or number that was not there */
};

struct word {
	const char *text;
	size_t bytes;
};

struct word tokens_take(struct tokens *t, const char *wanted);          /* any word */
void tokens_literal(struct tokens *t, const char *literal);             /* exactly this word */
bool tokens_peek(const struct tokens *t, const char *literal);          /* is the next word this one? */
uint64_t tokens_number(struct tokens *t, const char *wanted, uint64_t limit);
void tokens_number128(struct tokens *t, const char *wanted, uint64_t *low, uint64_t *high);
void tokens_hex(struct tokens *t, const char *wanted, uint8_t *out, size_t bytes);
void tokens_done(struct tokens *t); /* nothing may be left */

/* Canonical decimal: no sign, no leading zero, at most `limit`. */
bool word_number(struct word w, uint64_t limit, uint64_t *out);

#endif
