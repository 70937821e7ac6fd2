/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_process.c - the worker process: locks itself up, and works
 */
#include "tools/shardpack/sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* The system has no memory for a note: that is no fault of the input. */
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

/* Does it ask a command to stop?  The command ends us when it has no work for us any more. */
static bool asks_to_stop(int signal)
{
	return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGUSR1;
}

void sandbox_process_reset_signals(void)
{
	for (int i = 1; i < NSIG; i++)
		signal(i, asks_to_stop(i) ? SIG_IGN : SIG_DFL); /* refused for some: these have no handler */
}

static void catch_forbidden_calls(void)
{
	struct sigaction act = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
	sigset_t none;

	sigaction(SIGSYS, &act, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool limit(int what, rlim_t value)
{
	return setrlimit(what, &(struct rlimit){value, value}) == 0;
}

/* The memory that there is, and so much more. */
static bool limit_memory(uint64_t more)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;
	bool ok = f && fscanf(f, "%lu", &pages) == 1;

	if (f)
		fclose(f);
	return ok && limit(RLIMIT_AS, (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more);
}

void sandbox_process_keep(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);
	unsigned from = STDERR_FILENO + 1;

	if (a < 0 || b < 0)
		low = high;
	if (low > from)
		close_range(from, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

static int compare_bytes(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

/*
 * The C library asks the system how much memory there is when it first sorts more than 1 KiB, which
 * libtiff has it do.  Let it ask now.
 */
static void sort_first(void)
{
	char bytes[4096] = {0};

	qsort(bytes, sizeof(bytes), 1, compare_bytes);
}

/* No files, no processes, no core dump, so much memory; then the filter, which is tried. */
static bool lock_up(const struct sandbox_options *opt)
{
	sort_first();
	if (prctl(PR_SET_DUMPABLE, 0) != 0 || !limit_memory(opt->memory_bytes) || !limit(RLIMIT_CORE, 0) ||
	    !limit(RLIMIT_FSIZE, 0) || !limit(RLIMIT_NPROC, 0) || !limit(RLIMIT_NOFILE, 0) ||
	    !sandbox_filter_load(here.fd))
		return false;
	errno = 0;
	here.proving = 1;
	syscall(SYS_getppid); /* harmless, and forbidden */
	here.proving = 0;
	return here.proven;
}

_Noreturn void sandbox_process_run(const struct sandbox_options *opt, int fd, int memory_fd, pid_t parent)
{
	size_t in_at = sandbox_page_in(opt->out_bytes);
	uint8_t *shared;
	void *own;

	here.fd = fd;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE); /* it ended before that took effect */
	sandbox_process_reset_signals();
	catch_forbidden_calls();
	/* More than there is, so that it can grow; a worker that reads behind its end crashes. */
	shared = mmap(NULL, in_at + SANDBOX_IN_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory_fd, 0);
	own = shared == MAP_FAILED ? NULL : opt->begin(opt->context);
	if (!own) {
		send_note(NOTE_REFUSED, ENOMEM);
		_exit(EXIT_FAILURE);
	}
	here.page = (struct sandbox_page *)(void *)shared;
	sandbox_process_keep(fd, -1);
	if (!lock_up(opt)) {
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
