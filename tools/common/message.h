/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - what a tool tells its user: lines on stderr, and an exit code
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

enum exit_code {
	EXIT_DONE = 0,
	EXIT_BAD = 1,	      /* corrupt shard, or bad input beyond what the policy allows */
	EXIT_USAGE = 2,	      /* fix the command */
	EXIT_IO = 3,	      /* the system refused: disk, memory, device */
	EXIT_UNSUPPORTED = 4, /* well-formed, but needs a newer or fuller build */
	EXIT_MISMATCH = 5,    /* sound, but not as the manifest says */
	EXIT_STOPPED = 75,    /* asked to stop with work left: run again */
	EXIT_INTERRUPTED = 130,
};

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

/* ---- how a call of the library, and the program, ends ---- */

struct shard_error;

/* The exit code for a status of the library. */
int exit_code_of_status(int shard_status);

/* Print the message of a call of the library that failed, and return its exit code. */
int fail_of_library(const struct shard_error *err);

/*
 * Make sure that descriptors 0, 1 and 2 are open.  A descriptor that the caller had closed is
 * opened so that each use of it fails.  Without this, the first shard opened would become stdout.
 */
void reserve_standard_descriptors(void);

/*
 * Close stdout.  The answer is EXIT_DONE if everything was written.  Else the cause is printed and
 * the answer is EXIT_IO.  Nothing is printed if the reader left early (`| head`), which is EXIT_IO,
 * too, or if a signal came while it waited for the reader: EXIT_INTERRUPTED.  A tool that writes
 * much checks ferror(stdout) now and then and stops.
 */
int finish_stdout(void);

#endif
