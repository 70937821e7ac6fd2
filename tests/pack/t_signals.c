/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_signals.c - how a tool is stopped, and what its exit code says
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "shard.h"
#include "tests/child.h"
#include "tests/test.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Run `child` in a process of its own; its exit code, or 1000 and its signal. */
static int in_child(int (*child)(void))
{
	int status;
	pid_t pid;

	if (child_begin(&pid, 0))
		_exit(child());
	status = child_end(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int one_signal(void)
{
	signals_start();
	if (interrupted())
		return 1;
	raise(SIGTERM);
	return interrupted() ? 50 : 2;
}

static int same_request_twice(void)
{
	signals_start();
	raise(SIGTERM); /* as timeout(1) does it: the process, then its group */
	raise(SIGTERM);
	return interrupted() ? 50 : 2;
}

static int second_request(void)
{
	signals_start();
	raise(SIGINT);
	pause_ms(400);
	raise(SIGINT);
	return 50;
}

/* The kernel sends it, and then the shell, however long that takes. */
static int terminal_closed(void)
{
	signals_start();
	raise(SIGHUP);
	pause_ms(400);
	raise(SIGHUP);
	return interrupted() ? 50 : 2;
}

static int ignored_from_outside(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signals_start();
	raise(SIGINT);
	raise(SIGHUP);
	return interrupted() ? 2 : 50;
}

static int broken_pipe(void)
{
	int ends[2];

	signals_start();
	if (pipe(ends))
		return 1;
	close(ends[0]);
	return write(ends[1], "x", 1) == -1 && errno == EPIPE ? 50 : 2;
}

static int file_too_large(void)
{
	struct rlimit limit = {16, 16};
	FILE *file = tmpfile();

	signals_start();
	if (!file || setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	if (write(fileno(file), "0123456789abcdef", 16) != 16)
		return 2;
	return write(fileno(file), "x", 1) == -1 && errno == EFBIG ? 50 : 3;
}

/* The signal comes just before a read that would last for ever. */
static int before_a_read(void)
{
	int ends[2];
	char c;

	signals_start();
	if (pipe(ends))
		return 1;
	raise(SIGTERM);
	if (read(ends[0], &c, 1) != -1 || errno != EINTR)
		return 2;
	return read(ends[0], &c, 1) == -1 && errno == EINTR ? 50 : 3;
}

/* A failure is told by the reason that the user has: the signal. */
static int told_as_a_signal(void)
{
	signals_start();
	errno = EINTR;
	if (fail(EXIT_IO, "a call of ours") != EXIT_IO)
		return 1;
	raise(SIGTERM);
	errno = EINTR;
	if (fail(EXIT_IO, "not printed") != EXIT_INTERRUPTED)
		return 2;
	errno = EIO;
	if (fail(EXIT_IO, "a disk that fails meanwhile") != EXIT_IO)
		return 3;
	errno = EINTR;
	return fail(EXIT_BAD, "an input") == EXIT_BAD ? 50 : 4;
}

TEST(signals)
{
	int code = 0;

	CHECK_EQ(in_child(one_signal), 50);
	/* on a busy machine the second one may come too late to be the same */
	for (int i = 0; i < 10 && code != 50; i++)
		code = in_child(same_request_twice);
	CHECK_EQ(code, 50);
	CHECK_EQ(in_child(second_request), EXIT_INTERRUPTED);
	CHECK_EQ(in_child(terminal_closed), 50);
	CHECK_EQ(in_child(ignored_from_outside), 50);
	CHECK_EQ(in_child(before_a_read), 50);
	CHECK_EQ(in_child(told_as_a_signal), 50);
	CHECK_EQ(in_child(broken_pipe), 50);
	CHECK_EQ(in_child(file_too_large), 50);
}

static int closed_descriptors(void)
{
	close(0);
	close(1);
	close(2);
	reserve_standard_descriptors();
	if (open("/dev/null", O_RDWR) < 3)
		return 1;
	return write(1, "x", 1) == -1 && read(0, (char[1]){0}, 1) == -1 ? 50 : 2;
}

static int open_descriptors(void)
{
	int before = open("/dev/null", O_RDWR), after;

	close(before);
	reserve_standard_descriptors();
	after = open("/dev/null", O_RDWR);
	return before == after ? 50 : 1;
}

TEST(standard_descriptors)
{
	CHECK_EQ(in_child(closed_descriptors), 50);
	CHECK_EQ(in_child(open_descriptors), 50);
}

TEST(exit_codes)
{
	static const struct {
		int status, want;
	} rows[] = {
		{SHARD_OK, 0},	     {SHARD_END, 0},	   {SHARD_E_ARGUMENT, 2},    {SHARD_E_MEMORY, 3},
		{SHARD_E_IO, 3},     {SHARD_E_CORRUPT, 1}, {SHARD_E_UNSUPPORTED, 4}, {SHARD_E_MISMATCH, 5},
		{SHARD_E_EXISTS, 3}, {SHARD_E_DEVICE, 3},  {SHARD_E_CANCELLED, 130}, {-1000, 3},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("status %d", rows[i].status);
		CHECK_EQ(exit_code_of_status(rows[i].status), rows[i].want);
	}
}

TEST_MAIN()
