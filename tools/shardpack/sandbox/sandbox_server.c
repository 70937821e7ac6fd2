/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_server.c - the process that forks workers, and ends them
 *
 * It has one thread, reads no input and waits for nobody but its parent, so its forks are as clean
 * as its own.  A worker stays a child of it until its end is asked for: its number is not used for
 * another process before.
 */
#include "tools/shardpack/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
	pid_t end; /* whom to end; 0: fork one */
};

struct answer {
	int error; /* errno, or 0 */
	pid_t pid;
	int status;
};

#define FDS_BYTES CMSG_SPACE(2 * sizeof(int))

static void *fds_of(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);

	return c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(2 * sizeof(int)) ? CMSG_DATA(c) : NULL;
}

/* ---- in the server ---- */

static struct answer fork_one(const struct sandbox_options *opt, const int fd[2])
{
	struct answer a = {0};
	pid_t me = getpid();

	a.pid = fork();
	if (a.pid == 0)
		sandbox_process_run(opt, fd[0], fd[1], me);
	a.error = a.pid < 0 ? errno : 0;
	close(fd[0]);
	close(fd[1]);
	return a;
}

static struct answer end_one(pid_t pid)
{
	struct answer a = {.pid = pid};

	kill(pid, SIGKILL); /* of one that has ended, this changes nothing */
	while (waitpid(pid, &a.status, 0) < 0 && errno == EINTR)
		;
	return a;
}

/*
 * Memory that is shared with the parent, such as files that it maps, is out of reach from here on:
 * what is written there would change what the parent has.
 */
static bool leave_shared_memory(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool ok = f != NULL, starts = true;

	while (ok && fgets(line, sizeof(line), f)) {
		uintptr_t from, to;
		char how[5];

		if (starts && sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, how) == 3 && how[3] == 's')
			ok = munmap((void *)from, to - from) == 0;
		starts = strchr(line, '\n') != NULL;
	}
	ok = ok && !ferror(f);
	if (f)
		fclose(f);
	return ok;
}

/* Descriptors 0 to 2 lead nowhere, and no signal of the parent's terminal comes here. */
static void settle_in(int fd, pid_t parent)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= STDERR_FILENO; i++)
		dup2(nothing, i);
	sandbox_process_keep(fd, -1);
	setpgid(0, 0);
	sandbox_process_reset_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (nothing < 0 || !leave_shared_memory() || getppid() != parent)
		_exit(EXIT_FAILURE);
}

_Noreturn static void serve(const struct sandbox_options *opt, int server)
{
	for (;;) {
		_Alignas(struct cmsghdr) char control[FDS_BYTES];
		struct order o;
		struct iovec to = {&o, sizeof(o)};
		struct msghdr m = {
			.msg_iov = &to, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
		struct answer a = {.error = EPROTO};
		int fd[2];
		void *fds;

		if (recvmsg(server, &m, MSG_CMSG_CLOEXEC) != sizeof(o))
			_exit(EXIT_SUCCESS); /* the parent has ended, or wants no more */
		fds = fds_of(&m);
		if (o.end) {
			a = end_one(o.end);
		} else if (fds) {
			memcpy(fd, fds, sizeof(fd));
			a = fork_one(opt, fd);
		}
		if (write(server, &a, sizeof(a)) != sizeof(a))
			_exit(EXIT_FAILURE);
	}
}

/* ---- in the process that it serves ---- */

bool sandbox_server_start(struct sandbox_server *s, const struct sandbox_options *opt)
{
	pid_t me = getpid();
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return false;
	s->pid = fork();
	if (s->pid == 0) {
		settle_in(fd[1], me);
		serve(opt, fd[1]);
	}
	close(fd[1]);
	s->fd = fd[0];
	if (s->pid > 0)
		return true;
	close(fd[0]);
	return false;
}

void sandbox_server_stop(struct sandbox_server *s)
{
	if (s->pid <= 0)
		return;
	close(s->fd);
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool exchange(struct sandbox_server *s, const struct msghdr *m, struct answer *a)
{
	ssize_t n;

	if (sendmsg(s->fd, m, MSG_NOSIGNAL) < 0)
		return false;
	while ((n = read(s->fd, a, sizeof(*a))) < 0 && errno == EINTR)
		;
	if (n != sizeof(*a))
		errno = n < 0 ? errno : ECONNRESET;
	else if (a->error)
		errno = a->error;
	return n == sizeof(*a) && !a->error;
}

bool sandbox_server_spawn(struct sandbox_server *s, int fd, int memory_fd, pid_t *pid)
{
	_Alignas(struct cmsghdr) char control[FDS_BYTES] = {0};
	const int fds[2] = {fd, memory_fd};
	struct order o = {0};
	struct iovec from = {&o, sizeof(o)};
	struct msghdr m = {
		.msg_iov = &from, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	struct answer a;

	*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(fds)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	if (!exchange(s, &m, &a))
		return false;
	*pid = a.pid;
	return true;
}

bool sandbox_server_end(struct sandbox_server *s, pid_t pid, int *status)
{
	struct order o = {pid};
	struct iovec from = {&o, sizeof(o)};
	struct answer a;

	if (!exchange(s, &(struct msghdr){.msg_iov = &from, .msg_iovlen = 1}, &a))
		return false;
	*status = a.status;
	return true;
}
