/* SPDX-License-Identifier: Apache-2.0 */
/*
 * human.h - what people read on a terminal
 */
#ifndef SHARD_COMMON_HUMAN_H
#define SHARD_COMMON_HUMAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- numbers: 1.5 GiB, 1,281,167, 3m 20s ---- */

/*
 * Each call writes into the caller's buffer of HUMAN_CHARS and returns it, so that it can
 * stand among the arguments of a printf.  No locale is consulted.
 */

#define HUMAN_CHARS 40 /* the longest is 2^64 with separators and a unit, 34 */

const char *human_bytes(char out[HUMAN_CHARS], uint64_t bytes);		     /* "512 B", "1.5 GiB" */
const char *human_count(char out[HUMAN_CHARS], uint64_t count);		     /* "1,281,167" */
const char *human_duration(char out[HUMAN_CHARS], uint64_t duration_ns);     /* "4.2 s", "3m 20s", "1h 02m" */
const char *human_rate(char out[HUMAN_CHARS], double per_second);	     /* "0.4/s", "5,312/s" */
const char *human_byte_rate(char out[HUMAN_CHARS], double bytes_per_second); /* "812.4 MiB/s" */

/* ---- names and keys from elsewhere, made safe for a terminal ---- */

/*
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

/* ---- text in a screen of 80 columns ---- */

/*
 * Print words from `column` on, and a line's end; lines that would pass the 79th column go on in
 * the next, at `indent`.
 */
void wrap(FILE *out, const char *text, size_t column, size_t indent);

#endif
