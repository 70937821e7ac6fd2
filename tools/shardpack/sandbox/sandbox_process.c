/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_process.c - the worker process, which locks itself up and works; and the server that forks it
 *
 * The server has one thread, reads no input and waits for nobody but its parent, so its forks are as
 * clean as its own.  A worker stays a child of it until its end is asked for: its number is not used
 * for another process before.
 */
#include "tools/shardpack/sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the worker process ---- */

/* Of this process, which has one thread and one purpose. */
static struct {
	int fd;
	struct sandbox_page *page;
	volatile sig_atomic_t proving, proven;
} here;

static bool send_note(enum sandbox_note_kind kind, uint64_t value)
{
	struct sandbox_note n = {kind, value};

	return write(here.fd, &n, sizeof(n)) == sizeof(n);
}

static bool receive_note(enum sandbox_note_kind kind)
{
	struct sandbox_note n;

	return read(here.fd, &n, sizeof(n)) == sizeof(n) && n.kind == kind;
}

/* The system has no memory for a note: that is not the fault of the input. */
_Noreturn static void give_up(void)
{
	here.page->os_code = (uint32_t)errno;
	_exit(EXIT_FAILURE);
}

void sandbox_ask(uint64_t bytes)
{
	if (!send_note(NOTE_ASK, bytes))
		give_up();
	if (!receive_note(NOTE_GO))
		_exit(EXIT_FAILURE);
}

/* The kernel turns what is forbidden into this signal. */
static void trapped(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (here.proving) {
		here.proven = 1;
		return;
	}
	here.page->call = (uint32_t)info->si_syscall + 1;
	_exit(EXIT_FAILURE);
}

/*
 * No handlers of the parent.  Signals that ask a command to stop are ignored: schedulers send them
 * to all processes of a job, and a decoder that they ended would be missing for the shard that the
 * command finishes.
 */
static void reset_signals(void)
{
	for (int i = 1; i < NSIG; i++)
		signal(i, i == SIGINT || i == SIGTERM || i == SIGHUP || i == SIGUSR1
				  ? SIG_IGN
				  : SIG_DFL); /* refused for some: these have no handler */
}

static bool limit(int what, rlim_t value)
{
	return setrlimit(what, &(struct rlimit){value, value}) == 0;
}

static bool close_by_number(unsigned first, unsigned last)
{
	return first > last || !syscall(SYS_close_range, first, last, 0);
}

/* The kernel does it since Linux 5.9, where no filter refuses that.  Else /proc knows which there are. */
bool sandbox_close_others(int keep)
{
	unsigned first = STDERR_FILENO + 1, kept = (unsigned)keep;
	struct dirent *e;
	DIR *d;
	int fd, rc;

	if (close_by_number(first, kept - 1) && close_by_number(kept + 1, ~0U))
		return true;
	d = opendir("/proc/self/fd");
	if (!d)
		return false;
	for (errno = 0; (e = readdir(d)); errno = 0) {
		fd = atoi(e->d_name); /* 0 for "." and ".." */
		if (fd > STDERR_FILENO && fd != keep && fd != dirfd(d))
			close(fd);
	}
	rc = errno;
	closedir(d);
	errno = rc;
	return !rc;
}

static int compare_bytes(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

/* No files, no processes, no core dump, limited memory; then the filter, which is tried. */
static bool lock_up(const struct sandbox_options *opt)
{
	unsigned long pages = 0;
	char bytes[4096] = {0};
	bool ok;
	FILE *f;

	/*
	 * The C library asks the system how much memory there is when it first sorts more than 1 KiB,
	 * which libtiff has it do.  Let it ask now.
	 */
	qsort(bytes, sizeof(bytes), 1, compare_bytes);
	f = fopen("/proc/self/statm", "re");
	ok = f && fscanf(f, "%lu", &pages) == 1;
	if (f)
		fclose(f);
	if (!ok || prctl(PR_SET_DUMPABLE, 0) != 0 ||
	    !limit(RLIMIT_AS, (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + opt->memory_bytes) ||
	    !limit(RLIMIT_CORE, 0) || !limit(RLIMIT_FSIZE, 0) || !limit(RLIMIT_NPROC, 0) || !limit(RLIMIT_NOFILE, 0) ||
	    !sandbox_filter_load(here.fd))
		return false;
	errno = 0;
	here.proving = 1;
	syscall(SYS_getppid); /* harmless, and forbidden */
	here.proving = 0;
	return here.proven;
}

/* Never returns.  `fd` is the socket, `memory_fd` the shared memory, `parent` who forked it. */
_Noreturn static void run_worker(const struct sandbox_options *opt, int fd, int memory_fd, pid_t parent)
{
	struct sigaction forbidden = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
	size_t in_at = sandbox_page_in(opt->out_bytes);
	sigset_t none;
	uint8_t *shared;
	void *own;

	here.fd = fd;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE); /* it ended before that took effect */
	reset_signals();
	sigaction(SIGSYS, &forbidden, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* More than there is, so that it can grow; a worker that reads behind its end crashes. */
	shared = mmap(NULL, in_at + SANDBOX_IN_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory_fd, 0);
	own = shared == MAP_FAILED ? NULL : opt->begin(opt->context);
	if (!own) {
		send_note(NOTE_REFUSED, ENOMEM);
		_exit(EXIT_FAILURE);
	}
	here.page = (struct sandbox_page *)(void *)shared;
	if (!sandbox_close_others(fd) || !lock_up(opt)) {
		send_note(NOTE_REFUSED, (uint64_t)errno);
		_exit(EXIT_FAILURE);
	}
	if (!send_note(NOTE_READY, 0))
		_exit(EXIT_FAILURE);
	while (receive_note(NOTE_WORK)) {
		opt->work(own, here.page->message, shared + in_at, (size_t)here.page->in_bytes,
			  shared + SANDBOX_PAGE_BYTES);
		if (!send_note(NOTE_DONE, 0))
			give_up();
	}
	_exit(EXIT_SUCCESS);
}

/* ---- what both ends of the server exchange ---- */

struct order {
	pid_t end; /* whom to end; 0: fork one */
};

struct answer {
	int error; /* errno, or 0 */
	pid_t pid;
	int status;
};

#define FDS_BYTES CMSG_SPACE(2 * sizeof(int))

/* ---- in the server ---- */

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

_Noreturn static void serve(const struct sandbox_options *opt, int server, pid_t parent)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t me = getpid();

	/* Descriptors 0 to 2 lead nowhere, and no signal of the parent's terminal comes here. */
	for (int i = 0; i <= STDERR_FILENO; i++)
		dup2(nothing, i);
	if (!sandbox_close_others(server))
		_exit(EXIT_FAILURE);
	setpgid(0, 0);
	reset_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (nothing < 0 || !leave_shared_memory() || getppid() != parent)
		_exit(EXIT_FAILURE);
	for (;;) {
		_Alignas(struct cmsghdr) char control[FDS_BYTES];
		struct order o;
		struct iovec to = {&o, sizeof(o)};
		struct msghdr m = {
			.msg_iov = &to, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
		struct answer a = {.error = EPROTO};
		struct cmsghdr *c;
		int fd[2];

		if (recvmsg(server, &m, MSG_CMSG_CLOEXEC) != sizeof(o))
			_exit(EXIT_SUCCESS); /* the parent has ended, or needs no more workers */
		c = CMSG_FIRSTHDR(&m);
		if (o.end) {
			a = (struct answer){.pid = o.end};
			kill(o.end, SIGKILL); /* of one that has ended, this changes nothing */
			while (waitpid(o.end, &a.status, 0) < 0 && errno == EINTR)
				;
		} else if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd))) {
			memcpy(fd, CMSG_DATA(c), sizeof(fd));
			a = (struct answer){.pid = fork()};
			if (a.pid == 0)
				run_worker(opt, fd[0], fd[1], me);
			a.error = a.pid < 0 ? errno : 0;
			close(fd[0]);
			close(fd[1]);
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
	if (s->pid == 0)
		serve(opt, fd[1], me);
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
