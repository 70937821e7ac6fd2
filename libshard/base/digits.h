/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.h - numbers and bytes as words of a text: decimal, hexadecimal, percent-encoded
 *
 * Pure.  Each value has one spelling, and only that one is read.
 */
#ifndef SHARD_BASE_DIGITS_H
#define SHARD_BASE_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
