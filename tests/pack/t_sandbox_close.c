/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_sandbox_close.c - a sandbox's process keeps one descriptor, on old kernels as on new ones
 *
 * LDFLAGS: -Wl,--wrap=syscall
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"
#include "tools/shardpack/sandbox/sandbox.h"

static int refusal; /* what close_range() says; 0: the kernel is asked */
static int refused; /* how often it was said */

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number != SYS_close_range || !refusal)
		return __real_syscall(number, a, b, c, d, e, f);
	errno = refusal;
	refused++;
	return -1;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* In a process of its own; exits 0 if just 0, 1, 2 and `keep` are left of what is below 300. */
static void close_and_count(int keep, bool close_them)
{
	int source = open("/dev/null", O_RDONLY), wrong = 0;

	for (int fd = 3; fd < 300; fd += fd % 7 + 1)
		wrong += fd != source && dup2(source, fd) != fd;
	wrong += dup2(source, keep) != keep;
	if (close_them)
		wrong += !sandbox_close_others(keep);
	for (int fd = 0; fd < 300; fd++)
		wrong += is_open(fd) != (fd <= 2 || fd == keep);
	_exit(wrong ? 1 : refusal && !refused ? 2 : 0);
}

TEST(just_one_descriptor_stays)
{
	static const struct {
		const char *story;
		int keep, refusal;
		bool close_them;
		int want;
	} rows[] = {
		{"the kernel, the first", 3, 0, true, 0},
		{"the kernel, in the middle", 150, 0, true, 0},
		{"the kernel, the last", 299, 0, true, 0},
		{"an old kernel, the first", 3, ENOSYS, true, 0},
		{"an old kernel, in the middle", 150, ENOSYS, true, 0},
		{"an old kernel, the last", 299, ENOSYS, true, 0},
		{"a filter that refuses", 150, EPERM, true, 0},
		{"control: nothing is closed", 150, 0, false, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int status = 0;
		pid_t pid;

		refusal = rows[i].refusal;
		pid = fork();
		if (!pid)
			close_and_count(rows[i].keep, rows[i].close_them);
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		if (status != rows[i].want << 8)
			printf("%s: status %x\n", rows[i].story, (unsigned)status);
		CHECK_EQ(status, rows[i].want << 8);
	}
}

TEST_MAIN()
