/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - messages of a tool to its user, and its exit code
 *
 * A line is put together first and written by one fwrite, under stderr's own lock, so that
 * threads do not mix.  Errors of writing to stderr are the only ones that are not told:
 * there is nowhere left to say it.
 */
#include "tools/common/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "shard.h"
#include "tools/common/human.h"
#include "tools/common/signals.h"

#define TEXT_BYTES 4096 /* a shard_error holds 1,024, and a tool adds little */
#define LINE_BYTES 8192

#define ERASE_LINE  "\r\033[K"
#define BOLD_RED    "\033[1;31m"
#define BOLD_YELLOW "\033[1;33m"
#define PLAIN	    "\033[0m"

static struct {
	const char *program;	  /* const once threads exist */
	enum message_level level; /* const once threads exist */
	bool terminal;		  /* const once threads exist: stderr can erase a line */
	bool colour;		  /* const once threads exist */
	/*
	 * Stderr's lock: a status line is on the screen.  Atomic because ThreadSanitizer cannot see
	 * that lock.
	 */
	atomic_bool status_shown;
} talk = {.program = "", .level = MESSAGE_NORMAL};

void message_start(const char *program)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	talk.program = program;
	talk.terminal = isatty(STDERR_FILENO) && term && term[0] && strcmp(term, "dumb");
	talk.colour = talk.terminal && !(no_color && no_color[0]);
	talk.status_shown = false;
}

void message_level(enum message_level level)
{
	talk.level = level;
}

bool message_shows(enum message_level level)
{
	return talk.level >= level;
}

/* `kind` stands behind the program's name; NULL: neither is there. */
static void say(const char *kind, const char *colour, const char *fmt, va_list ap)
{
	char text[TEXT_BYTES], safe[LINE_BYTES - 512], line[LINE_BYTES];
	bool coloured = kind && colour[0] && talk.colour;
	int length = vsnprintf(text, sizeof(text), fmt, ap);
	bool cut = length >= (int)sizeof(text);

	if (length < 0)
		snprintf(text, sizeof(text), "%s", fmt); /* better the bare format than nothing */
	cut |= escape_text(safe, sizeof(safe), text, strlen(text), ESCAPE_TALK) >= sizeof(safe);

	flockfile(stderr);
	snprintf(line, sizeof(line), "%s%s%s%s%s%s%s%s\n", talk.status_shown ? ERASE_LINE : "", coloured ? colour : "",
		 kind ? talk.program : "", kind ? kind : "", coloured ? PLAIN : "", kind ? " " : "", safe,
		 cut ? "..." : "");
	talk.status_shown = false;
	fwrite(line, 1, strlen(line), stderr);
	funlockfile(stderr);
}

void detail(const char *fmt, ...)
{
	va_list ap;

	if (talk.level < MESSAGE_VERBOSE)
		return;
	va_start(ap, fmt);
	say(":", "", fmt, ap);
	va_end(ap);
}

void note(const char *fmt, ...)
{
	va_list ap;

	if (talk.level < MESSAGE_NORMAL)
		return;
	va_start(ap, fmt);
	say(":", "", fmt, ap);
	va_end(ap);
}

void warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(": warning:", BOLD_YELLOW, fmt, ap);
	va_end(ap);
}

int fail(int exit_code, const char *fmt, ...)
{
	va_list ap;

	if (exit_code == EXIT_IO && errno == EINTR && interrupted())
		return EXIT_INTERRUPTED; /* a call that waited gave up because the user wants to stop */
	va_start(ap, fmt);
	say(":", BOLD_RED, fmt, ap);
	va_end(ap);
	return exit_code;
}

void hint(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(NULL, "", fmt, ap);
	va_end(ap);
}

unsigned message_columns(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	unsigned long value;

	if (!talk.terminal)
		return 0;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	value = columns ? strtoul(columns, NULL, 10) : 0;
	return value > 0 && value <= 10000 ? (unsigned)value : 80;
}

void message_status(const char *text)
{
	flockfile(stderr);
	if (text)
		fprintf(stderr, "\r%s\033[K", text);
	else if (talk.status_shown)
		fputs(ERASE_LINE, stderr);
	talk.status_shown = text != NULL;
	fflush(stderr);
	funlockfile(stderr);
}

/* ---- how a call of the library, and the program, ends ---- */

int exit_code_of_status(int shard_status)
{
	switch (shard_status) {
	case SHARD_OK:
	case SHARD_END:
		return EXIT_DONE;
	case SHARD_E_ARGUMENT:
		return EXIT_USAGE;
	case SHARD_E_CORRUPT:
		return EXIT_BAD;
	case SHARD_E_UNSUPPORTED:
		return EXIT_UNSUPPORTED;
	case SHARD_E_MISMATCH:
		return EXIT_MISMATCH;
	case SHARD_E_CANCELLED:
		return EXIT_INTERRUPTED;
	default: /* MEMORY, IO, EXISTS, DEVICE, and what a newer library may add */
		return EXIT_IO;
	}
}

int fail_of_library(const struct shard_error *err)
{
	return fail(exit_code_of_status(err->status), "%s", err->message);
}

void reserve_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/*
		 * open() gives the lowest free number, which is fd.  The wrong direction is
		 * wanted: reading stdin or writing stdout then fails instead of vanishing.
		 */
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return; /* no /dev/null: as the caller left it */
	}
}

int finish_stdout(void)
{
	int failed_before = ferror(stdout);
	int os_code;

	errno = 0;
	if (fclose(stdout) == 0 && !failed_before)
		return EXIT_DONE;
	os_code = errno;
	if (os_code == EPIPE)
		return EXIT_IO;
	if (interrupted())
		return EXIT_INTERRUPTED;
	return fail(EXIT_IO, "stdout: %s; the output is incomplete", os_code ? strerror(os_code) : "a write failed");
}
