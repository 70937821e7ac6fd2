/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - text that grows, and names encoded so that each is one token
 *
 * A text on a shelf remembers that a file had no room, and later calls do nothing.  So a writer of
 * many lines asks text_failed() once, at its end.  A text in memory never fails; see memory.h.
 */
#ifndef SHARD_COMMON_TEXT_H
#define SHARD_COMMON_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libshard/base/words.h"
#include "shard_inspect.h"

struct shelf;

struct text {	    /* start it zeroed */
	char *data; /* NUL-terminated once anything was added */
	size_t bytes, capacity_bytes;
	bool failed;
	struct shelf *shelf; /* where it lies if it is large; NULL: in memory */
};

void text_add(struct text *t, const void *data, size_t bytes);
void text_format(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_encode(struct text *t, const char *data, size_t bytes, bool slash); /* percent_encode() */
void text_hex(struct text *t, const uint8_t *data, size_t bytes);
void text_put_before(struct text *t, const struct text *head); /* whatever is in t already moves behind it */
bool text_failed(const struct text *t);			       /* only on a shelf */
void text_free(struct text *t);

/* Lower-case hex of exactly `bytes` bytes.  False if it is anything else. */
static inline bool text_unhex(const char *in, size_t in_bytes, uint8_t *out, size_t bytes)
{
	return in_bytes == 2 * bytes && hex_to_bytes(out, in, bytes);
}

/* A number such that reading it gives the same double, in as few digits as that takes. */
#define TEXT_DOUBLE_CHARS 32
void text_double(char out[TEXT_DOUBLE_CHARS], double value);

/*
 * A decimal number as most programs write it: no '+', no blanks, no hexadecimal digits, all of
 * which strtod() takes.  `words`: inf, infinity and nan are numbers too, in letters of any case.
 */
bool text_is_decimal(const char *in, size_t in_bytes, bool words);

/* A finite decimal number.  `in` ends in NUL or a character that no number has. */
bool text_parse_double(const char *in, size_t in_bytes, double *out);

/* Decimal digits, perhaps with a '-' and leading zeros.  `in` as above. */
bool text_i64(const char *in, size_t in_bytes, int64_t *out);

/*
 * Of names that libshard gives to the numbers from `first` on, the number of this one.
 */
#define TEXT_NO_NAME UINT32_MAX
uint32_t text_named(enum shard_name_of what, const char *word, size_t bytes, uint32_t first);

/* A word as a POSIX shell reads it back: quoted only when it must be. */
void text_shell_word(struct text *t, const char *word);

/* A relative path without components that are empty, "." or "..": it leads nowhere but below. */
bool text_stays_below(const char *path);

/*
 * The same path without its components that are empty or ".", into `out` of `room` bytes with a
 * NUL; "" for "./".  False if it is empty, begins with "/", leads up, has a NUL byte, or finds no
 * room.
 */
bool text_settle_path(const char *path, size_t bytes, char *out, size_t room);

/* Valid UTF-8 of 1 to `bytes_max` bytes without NUL, as a key or class name must be. */
bool text_is_name(const char *data, size_t bytes, size_t bytes_max);

/* ---- the last line of a small file, "end" and the SHA-256 of all before it ---- */

void text_add_end(struct text *t);

/* Check the line and cut it off.  False if it is missing, or is that of another text. */
bool text_cut_end(struct text *t);

/* ---- the lines of a text file, none longer than a limit ---- */

/*
 * A file without a newline would otherwise be held whole before anyone sees that it is not a list.
 */

#define LINE_BYTES_MAX 8192 /* more than any path or name may have */

struct line { /* zeroed before the first one */
	char text[LINE_BYTES_MAX + 1];
	size_t bytes;
	uint64_t number; /* from 1 on */
	bool is_end;	 /* there was no further line */
};

/*
 * The next line, without its newline and with a NUL behind it; the first one without a byte-order
 * mark.  A file in UTF-16 is refused.  Messages call the file `name`, and say that a line must be
 * `what`.  Returns the exit code.
 */
int line_next(struct line *l, FILE *in, const char *name, const char *what);

#endif
