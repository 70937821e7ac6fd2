/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape.h - names and keys from elsewhere, made safe for a terminal
 *
 * A file name or a record key may hold anything but a NUL byte: newlines that forge a log
 * line, ESC sequences that drive the terminal, bidirectional controls that reorder the
 * text.  Written by these functions it is one line of valid UTF-8 that shows all of it:
 *
 *   \a \b \t \n \v \f \r     the controls that C has names for
 *   \ooo                     other ASCII controls, and each byte that is not valid UTF-8
 *   \uXXXX, \UXXXXXXXX       code points that a terminal obeys or hides: C1 controls, bidi
 *                            controls, line separators, zero-width and tag characters
 *
 * With ESCAPE_EXACT a backslash is doubled, so that the text can be turned back into the
 * very bytes; use it for data.  ESCAPE_TALK leaves backslashes alone, so that text which
 * was escaped once is not escaped again; use it for messages.
 */
#ifndef SHARD_COMMON_ESCAPE_H
#define SHARD_COMMON_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum escape_mode {
	ESCAPE_EXACT,
	ESCAPE_TALK,
};

/*
 * Write `text` escaped to `out`, always with a NUL, and never more than `out_bytes`.  Whole
 * characters and whole escapes that do not fit are left out.  Returns the length of all of it,
 * without the NUL: it did not fit if that is `out_bytes` or more.
 */
size_t escape_text(char *out, size_t out_bytes, const char *text, size_t text_bytes, enum escape_mode mode);

/* The same to a stream.  A write error stays in the stream: see ferror(). */
void escape_write(FILE *out, const char *text, size_t text_bytes, enum escape_mode mode);

#endif
