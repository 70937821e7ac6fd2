/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - is it UTF-8, and which characters are they?
 *
 * Overlong forms, surrogates and values past U+10FFFF are not valid.
 */
#ifndef SHARD_BASE_UTF8_H
#define SHARD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Length of the character that `text` begins with, 1 to 4 bytes, and its code point; 0 if the first
 * byte begins none.  A NUL is a character.
 */
size_t utf8_character(const void *text, size_t text_bytes, uint32_t *code_point);

/* Position of the first byte that begins no character, or `text_bytes`. */
size_t utf8_bad(const void *text, size_t text_bytes);
/* The same, and a NUL is bad, too. */
size_t utf8_bad_or_nul(const void *text, size_t text_bytes);

/* The code points that a terminal obeys, or for which it shows nothing.  Ranges, in order. */
#define UTF8_HIDDEN_RANGES 11
extern const struct utf8_range {
	uint32_t first, last;
} utf8_hidden[UTF8_HIDDEN_RANGES];
bool utf8_is_hidden(uint32_t code_point);

/* Bytes of the mark that some editors put in front of a text, 3; 0 if it has none. */
#define UTF8_MARK_BYTES 3
size_t utf8_mark(const char *text, size_t text_bytes);

/*
 * UTF-16, by its mark or by its first character, of which one byte is NUL.  What is said of it
 * follows the name of the text and a colon.
 */
bool utf8_is_utf16(const char *text, size_t text_bytes);
#define UTF8_UTF16 "is UTF-16; save it as UTF-8"

#endif
