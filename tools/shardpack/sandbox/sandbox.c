/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c - work on bytes from strangers, in processes that can do nothing else
 *
 * The side of the thread that a worker process works for: it gives inputs, waits, and judges how a
 * worker ended.
 */
#include "tools/shardpack/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libshard/io/io.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"

#define TICK_MS	   50		      /* how often a worker that is busy is looked at */
#define KEPT_BYTES ((size_t)16 << 20) /* of shared memory, from input to input */

struct sandbox {
	struct sandbox_options opt; /* const after open */
	pthread_mutex_t lock;
	struct sandbox_server server; /* lock */
};

struct sandbox_worker { /* of one thread */
	struct sandbox *s;
	int memory_fd, fd;    /* fd: the socket to the process; -1 without one */
	pid_t pid;	      /* 0: none */
	uint64_t run_count;   /* inputs that this process was given */
	uint64_t base_bytes;  /* of memory: what it had before the first one; 0: unknown */
	uint64_t asked_bytes; /* of memory: what the last input asked for */
	uint8_t *shared;
	size_t mapped_bytes, bytes; /* bytes: that there are */
};

static enum sandbox_end say(const struct sandbox_job *job, enum sandbox_end end, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static enum sandbox_end say(const struct sandbox_job *job, enum sandbox_end end, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(job->why, job->why_bytes, fmt, ap);
	va_end(ap);
	return end;
}

/* ---- notes ---- */

/* Does not wait: a worker that never reads would hold us up, with no limit of time. */
static bool send_note(const struct sandbox_worker *w, enum sandbox_note_kind kind)
{
	struct sandbox_note n = {kind, 0};

	return send(w->fd, &n, sizeof(n), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(n);
}

/* CPU time of the process; it does not change while that waits. */
static uint64_t cpu_ns(const struct sandbox_worker *w)
{
	struct timespec t = {0};
	clockid_t clock;

	if (clock_getcpuclockid(w->pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

enum waited { WAITED_NOTE, WAITED_END, WAITED_BUSY, WAITED_IDLE, WAITED_INTERRUPTED };

/*
 * The next note, of kind 0 if it is none of ours; or why there is none: the process ended, it used
 * its CPU time, or it used none for as long.  Ticks are counted and not the clock, which goes on
 * while all of us are suspended.
 */
static enum waited next_note(const struct sandbox_worker *w, uint64_t from_ns, struct sandbox_note *out)
{
	uint64_t most_ns = (uint64_t)w->s->opt.seconds * 1000000000, last_ns = from_ns, idle_ms = 0;
	struct pollfd p = {.fd = w->fd, .events = POLLIN};
	ssize_t n;

	while (poll(&p, 1, TICK_MS) <= 0) {
		uint64_t now_ns = cpu_ns(w);

		if (interrupted())
			return WAITED_INTERRUPTED;
		idle_ms = now_ns == last_ns ? idle_ms + TICK_MS : 0;
		last_ns = now_ns;
		if (now_ns - from_ns > most_ns)
			return WAITED_BUSY;
		if (idle_ms > (uint64_t)w->s->opt.seconds * 1000)
			return WAITED_IDLE;
	}
	n = recv(w->fd, out, sizeof(*out), MSG_DONTWAIT);
	if (n == sizeof(*out))
		return WAITED_NOTE;
	*out = (struct sandbox_note){0}; /* no note has this kind */
	return n > 0 || (n == 0 && !(p.revents & POLLHUP)) ? WAITED_NOTE : WAITED_END;
}

/* ---- the process ---- */

/* It has ended; *status says how.  False with errno if the server cannot tell. */
static bool end_process(struct sandbox_worker *w, int *status)
{
	bool ok = true;

	*status = 0;
	if (!w->pid)
		return true;
	close(w->fd);
	pthread_mutex_lock(&w->s->lock);
	ok = sandbox_server_end(&w->s->server, w->pid, status);
	pthread_mutex_unlock(&w->s->lock);
	w->fd = -1;
	w->pid = 0;
	return ok;
}

/* The most memory that the process ever had; 0 if the system does not say. */
static uint64_t peak_bytes(const struct sandbox_worker *w)
{
	char path[64];
	uint64_t kib;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)w->pid);
	kib = proc_number(path, "\nVmPeak:");
	return kib == UINT64_MAX ? 0 : kib * 1024;
}

bool sandbox_took_memory(const struct sandbox_worker *w)
{
	uint64_t half = w->s->opt.memory_bytes / 2, peak = w->pid ? peak_bytes(w) : 0;

	return w->asked_bytes >= half || (w->base_bytes && peak > w->base_bytes && peak - w->base_bytes >= half);
}

static enum sandbox_end refuse_start(const struct sandbox_job *job, int error)
{
	if (!error)
		return say(job, SANDBOX_STOPPED,
			   "the kernel took the filter of system calls (seccomp), but it has no effect");
	if (error == ENOMEM || error == EAGAIN || error == EMFILE || error == ENFILE)
		return say(job, SANDBOX_STOPPED, "cannot start a process: %s", strerror(error));
	return say(job, SANDBOX_STOPPED, "the system refuses to lock up a process (seccomp, rlimits): %s",
		   strerror(error));
}

static enum sandbox_end start_process(struct sandbox_worker *w, const struct sandbox_job *job)
{
	struct sandbox_note n = {0};
	enum waited waited;
	int fd[2], status;
	bool ok;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return refuse_start(job, errno);
	pthread_mutex_lock(&w->s->lock);
	ok = sandbox_server_spawn(&w->s->server, fd[1], w->memory_fd, &w->pid);
	pthread_mutex_unlock(&w->s->lock);
	close(fd[1]);
	w->fd = fd[0];
	w->run_count = 0;
	if (!ok) {
		w->pid = 0;
		close(fd[0]);
		return refuse_start(job, errno);
	}
	waited = next_note(w, 0, &n);
	if (waited == WAITED_NOTE && n.kind == NOTE_READY) {
		w->base_bytes = peak_bytes(w);
		return SANDBOX_DONE;
	}
	end_process(w, &status);
	if (waited == WAITED_NOTE && n.kind == NOTE_REFUSED)
		return refuse_start(job, (int)n.value);
	if (waited == WAITED_INTERRUPTED)
		return say(job, SANDBOX_STOPPED, "interrupted");
	return say(job, SANDBOX_STOPPED, "a process ended before it was locked up (wait status %#x)", (unsigned)status);
}

static const char *decoder_signal(int signal)
{
	static const struct {
		int signal;
		const char *name;
	} own[] = {
		{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"},	{SIGFPE, "SIGFPE"},
		{SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"}, {SIGTRAP, "SIGTRAP"},
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i].signal == signal)
			return own[i].name;
	return NULL;
}

/* It ended by itself, or something ended it. */
static enum sandbox_end explain_end(struct sandbox_worker *w, const struct sandbox_job *job)
{
	const struct sandbox_page *page = (const struct sandbox_page *)(const void *)w->shared;
	uint32_t call = page->call, os_code = page->os_code;
	const char *name = call ? sandbox_filter_name(call - 1) : NULL;
	int status;

	if (!end_process(w, &status))
		return say(job, SANDBOX_STOPPED, "the process that starts decoders has ended: %s", strerror(errno));
	if (WIFSIGNALED(status) && decoder_signal(WTERMSIG(status)))
		return say(job, SANDBOX_FAULT, "its decoder crashed: %s (%s)", decoder_signal(WTERMSIG(status)),
			   strsignal(WTERMSIG(status)));
	if (WIFSIGNALED(status))
		return say(job, SANDBOX_STOPPED,
			   "its decoder was ended from outside by signal %d (%s); if memory ran out, use fewer with -j",
			   WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (call)
		return say(job, SANDBOX_FAULT,
			   "its decoder called the system for %s (number %u), which --sandbox "
			   "forbids (SIGSYS)",
			   name ? name : "a service", call - 1);
	if (os_code == ENOMEM || os_code == ENOBUFS)
		return say(job, SANDBOX_STOPPED, "its decoder cannot answer: %s", strerror((int)os_code));
	return say(job, SANDBOX_FAULT, "its decoder ended its process with exit code %d", WEXITSTATUS(status));
}

/* ---- one input ---- */

/* Reserve what is needed, so that no write to it can fail; give back what was large. */
static bool settle_bytes(struct sandbox_worker *w, size_t need)
{
	need = (need + SANDBOX_PAGE_BYTES - 1) & ~(size_t)(SANDBOX_PAGE_BYTES - 1);
	if (need < w->bytes && w->bytes > KEPT_BYTES && ftruncate(w->memory_fd, (off_t)need) == 0)
		w->bytes = need;
	if (need <= w->bytes)
		return true;
	errno = posix_fallocate(w->memory_fd, 0, (off_t)need);
	if (errno)
		return false;
	w->bytes = need;
	return true;
}

static enum sandbox_end wait_for_answer(struct sandbox_worker *w, const struct sandbox_job *job)
{
	const struct sandbox_options *opt = &w->s->opt;
	uint64_t from_ns = cpu_ns(w);
	struct sandbox_note n = {0};
	enum waited waited = next_note(w, from_ns, &n);
	int status;

	if (waited == WAITED_NOTE && n.kind == NOTE_ASK) { /* once for each input */
		w->asked_bytes = n.value;
		job->asked(job->context, n.value < opt->memory_bytes ? n.value : opt->memory_bytes);
		if (send_note(w, NOTE_GO))
			waited = next_note(w, from_ns, &n);
		else if (errno != EAGAIN)
			return explain_end(w, job);
	}
	if (waited == WAITED_NOTE && n.kind == NOTE_DONE) {
		memcpy(job->message, w->shared + offsetof(struct sandbox_page, message), opt->message_bytes);
		memcpy(job->out, w->shared + SANDBOX_PAGE_BYTES, job->out_bytes);
		return SANDBOX_DONE;
	}
	if (waited == WAITED_END)
		return explain_end(w, job);
	end_process(w, &status);
	if (waited == WAITED_INTERRUPTED)
		return say(job, SANDBOX_STOPPED, "interrupted");
	if (waited == WAITED_NOTE)
		return say(job, SANDBOX_FAULT, "its decoder wrote to the socket of its process");
	return waited == WAITED_BUSY
		       ? say(job, SANDBOX_FAULT, "its decoder hangs: it used %u s of CPU time", opt->seconds)
		       : say(job, SANDBOX_FAULT, "its decoder hangs: it did nothing for %u s", opt->seconds);
}

static enum sandbox_end run_once(struct sandbox_worker *w, const struct sandbox_job *job)
{
	const struct sandbox_options *opt = &w->s->opt;
	struct sandbox_page *page = (struct sandbox_page *)(void *)w->shared;
	size_t in_at = sandbox_page_in(opt->out_bytes);
	enum sandbox_end end = SANDBOX_DONE;
	int status;

	for (int i = 0; i < 2; i++) {
		if (!w->pid)
			end = start_process(w, job);
		if (end != SANDBOX_DONE)
			return end;
		if (job->in_bytes > SANDBOX_IN_MAX || !settle_bytes(w, in_at + job->in_bytes))
			return say(job, SANDBOX_STOPPED, "no shared memory for %zu bytes: %s", job->in_bytes,
				   strerror(errno));
		page->in_bytes = job->in_bytes;
		page->call = page->os_code = 0;
		w->asked_bytes = 0;
		memcpy(page->message, job->message, opt->message_bytes);
		if (job->in_bytes)
			memcpy(w->shared + in_at, job->in, job->in_bytes);
		w->run_count++;
		if (send_note(w, NOTE_WORK))
			return wait_for_answer(w, job);
		/* It was ended while it had nothing to do, which is not the fault of an input. */
		end_process(w, &status);
	}
	return say(job, SANDBOX_STOPPED, "the processes of decoders are ended from outside");
}

enum sandbox_end sandbox_run(struct sandbox_worker *w, const struct sandbox_job *job)
{
	enum sandbox_end end = run_once(w, job);

	if (end == SANDBOX_FAULT && w->run_count > 1)
		end = run_once(w, job);
	return end;
}

bool sandbox_renew(struct sandbox_worker *w)
{
	int status;

	if (w->run_count < 2)
		return false;
	end_process(w, &status);
	return true;
}

/* ---- open and close ---- */

struct sandbox_worker *sandbox_worker_open(struct sandbox *s)
{
	struct sandbox_worker *w = calloc(1, sizeof(*w));
	size_t out_end = sandbox_page_in(s->opt.out_bytes);
	int os_code;

	if (!w)
		return NULL;
	w->s = s;
	w->fd = -1;
	w->memory_fd = memfd_create("shardpack", MFD_CLOEXEC);
	w->mapped_bytes = out_end + SANDBOX_IN_MAX;
	w->shared = MAP_FAILED;
	if (w->memory_fd >= 0 && settle_bytes(w, out_end))
		w->shared = mmap(NULL, w->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
				 w->memory_fd, 0);
	if (w->shared != MAP_FAILED)
		return w;
	os_code = errno;
	sandbox_worker_close(w);
	errno = os_code;
	return NULL;
}

void sandbox_worker_close(struct sandbox_worker *w)
{
	int status;

	if (!w)
		return;
	end_process(w, &status);
	if (w->shared != MAP_FAILED)
		munmap(w->shared, w->mapped_bytes);
	if (w->memory_fd >= 0)
		close(w->memory_fd);
	free(w);
}

int sandbox_open(struct sandbox **out, const struct sandbox_options *opt)
{
	struct sandbox *s = xcalloc(1, sizeof(*s));
	struct sandbox_worker *w = NULL;
	char why[200] = "";
	struct sandbox_job job = {.why = why, .why_bytes = sizeof(why)};
	int rc = EXIT_DONE;

	s->opt = *opt;
	pthread_mutex_init(&s->lock, NULL);
	if (!sandbox_server_start(&s->server, &s->opt))
		rc = fail(EXIT_IO, "--sandbox: cannot start a process: %s", strerror(errno));
	/* One worker can be locked up here, so the others can. */
	if (!rc) {
		w = sandbox_worker_open(s);
		if (!w)
			rc = fail(EXIT_IO, "--sandbox: no shared memory: %s", strerror(errno));
	}
	if (!rc && start_process(w, &job) != SANDBOX_DONE)
		rc = interrupted()
			     ? EXIT_INTERRUPTED
			     : fail(EXIT_IO, "--sandbox: %s; nothing was decoded; without --sandbox it would be", why);
	sandbox_worker_close(w);
	if (rc) {
		sandbox_close(s);
		s = NULL;
	}
	*out = s;
	return rc;
}

void sandbox_close(struct sandbox *s)
{
	if (!s)
		return;
	sandbox_server_stop(&s->server);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
