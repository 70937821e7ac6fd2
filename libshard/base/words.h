/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - a text, taken apart from its beginning: lines, words between separators, numbers
 *
 * Pure.  Nothing is skipped: two separators beside each other have an empty word between them, and
 * so has a separator at the end.  A function that says false has taken nothing, so that a caller can
 * ask for something else.  A caller that wants the text to end here asks words_done().
 */
#ifndef SHARD_BASE_WORDS_H
#define SHARD_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct word {
	const char *text; /* without a NUL */
	size_t bytes;
};

struct words {
	const char *at; /* what was not taken yet; NULL: the last word was taken */
	const char *end;
};

static inline struct words words_of(const char *text, size_t bytes)
{
	return (struct words){text, text + bytes};
}

static inline bool words_done(const struct words *c)
{
	return !c->at;
}

/* A line that ends in LF, which is not a part of it. */
bool words_line(struct words *c, struct words *line);

/* The next word, and the separator behind it; what is left if no separator is. */
bool words_take(struct words *c, char separator, struct word *out);

/*
 * Such a word that says exactly this: `literal`, a number of text_u64() up to `most`, or `bytes` bytes
 * in hexadecimal digits; of these `out` has a part if it is not.
 */
bool words_is(struct words *c, char separator, const char *literal);
bool words_u64(struct words *c, char separator, uint64_t most, uint64_t *out);
bool words_hex(struct words *c, char separator, uint8_t *out, size_t bytes);

/* All that is left; an empty word if nothing is. */
struct word words_rest(const struct words *c);

bool word_is(struct word w, const char *literal);

#endif
