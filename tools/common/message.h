/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - messages of a tool to its user: one line each, on stderr
 *
 *   detail("read %s", path)                          shown with -v
 *   note("wrote 16 shards")                          not shown with -q
 *   warn("%s: 3 files ignored", path)                always shown
 *   return fail(EXIT_USAGE, "--crop 300: larger than --resize 256");
 *
 * A process has one stderr, so its state is kept in message.c: message_start() and message_level()
 * belong to main, before threads exist.  The other calls may come from any thread; lines never mix.
 * Text is escaped as talk, see human.h, so a hostile file name or error text may be printed as it is
 * and still makes one harmless line.
 */
#ifndef SHARD_COMMON_MESSAGE_H
#define SHARD_COMMON_MESSAGE_H

#include <stdbool.h>

#define MESSAGE_PRINTF(format_idx, first_idx) __attribute__((format(printf, format_idx, first_idx)))

enum message_level {
	MESSAGE_QUIET,	 /* warnings and failures only */
	MESSAGE_NORMAL,	 /* notes and progress too */
	MESSAGE_VERBOSE, /* details too */
};

/*
 * `program` is the prefix of every line and is kept, not copied.  The level is MESSAGE_NORMAL until
 * it is changed.  Colour is used when stderr is a terminal, TERM says so and is not "dumb", and
 * NO_COLOR is unset or empty.
 */
void message_start(const char *program);
void message_level(enum message_level level);
bool message_shows(enum message_level level);

void detail(const char *fmt, ...) MESSAGE_PRINTF(1, 2);
void note(const char *fmt, ...) MESSAGE_PRINTF(1, 2);
void warn(const char *fmt, ...) MESSAGE_PRINTF(1, 2);
int fail(int exit_code, const char *fmt, ...) MESSAGE_PRINTF(2, 3); /* returns exit_code */
void hint(const char *fmt, ...) MESSAGE_PRINTF(1, 2);		    /* a line below a fail, without prefix */

/* Columns of the terminal that stderr is, or 0 if it is not a terminal or cannot erase a line. */
unsigned message_columns(void);

/*
 * Draw `text` as the line at the bottom of the terminal, in place of the one before; NULL
 * removes it.  A message removes it too, so that it is never torn.  For progress.c, which
 * keeps the text narrower than the terminal.
 */
void message_status(const char *text);

#endif
