/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - words of a text: decimal, hexadecimal, percent-encoded; lines, and words between separators
 */
#ifndef SHARD_BASE_WORDS_H
#define SHARD_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each value has one spelling, and only that one is read. */

/* A decimal number without sign or leading zeros, which is the whole word. */
bool text_u64(const char *in, size_t in_bytes, uint64_t *out);

/*
 * Lower-case hex of `bytes` bytes and a NUL; and back: false unless the 2 * bytes at `text` are all
 * such digits.
 */
void hex_from_bytes(char *text, const uint8_t *p, size_t bytes);
bool hex_to_bytes(uint8_t *p, const char *text, size_t bytes);

/*
 * Percent-encoding as in format/SHARD.md part 3: letters, digits and . _ ~ - stand for themselves,
 * and so does '/' when `slash` is set; every other byte is %XX.  `out` has room for 3 * in_bytes + 1;
 * a NUL is added.  Returns the length.
 */
bool percent_is_plain(char c, bool slash);
size_t percent_encode(char *out, const char *in, size_t in_bytes, bool slash);

/*
 * The reverse.  `out` has room for in_bytes + 1; a NUL is added.  Returns the length, or -1 if `in`
 * is not in that form, or hides a NUL byte.
 */
long text_decode(const char *in, size_t in_bytes, bool slash, char *out);

/*
 * Does it begin as "s3://" does: a letter, more of letters, digits, + . -, then "://"?  A folder that
 * is really called "s3:" is "./s3:".
 */
bool text_is_url(const char *text);

#define URL_REMEDY "is a URL; only files and folders of this machine are read and written"

/*
 * ---- a text, taken apart from its beginning ----
 *
 * Nothing is skipped: two separators beside each other have an empty word between them, and so has a
 * separator at the end.  A function that says false has taken nothing, so that a caller can ask for
 * something else.  A caller that wants the text to end here asks words_done().
 */

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
