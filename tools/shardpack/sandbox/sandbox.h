/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.h - processes that decode and can do nothing else
 */
#ifndef SHARD_SHARDPACK_SANDBOX_SANDBOX_H
#define SHARD_SHARDPACK_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * sandbox.c
 *
 * A worker process has shared memory for what goes in and comes out, one socket to the thread that
 * it works for, and no other descriptor.  A filter of the kernel lets it compute and take memory;
 * rlimits say how much.  If it crashes, hangs or asks for anything else, its input is at fault, and
 * another process takes its place.
 *
 * No process is made out of a process with threads: a server, a process that is forked before there
 * are any, forks all workers.  They end with it, and it ends with its parent, whatever kills that.
 */

struct sandbox;

struct sandbox_options;

/*
 * Start the server, and prove with a first worker that the system locks it up.  The caller has no
 * other thread.  Prints why not and returns the exit code.
 */
int sandbox_open(struct sandbox **out, const struct sandbox_options *opt);
void sandbox_close(struct sandbox *s);

/* A thread that has work for the sandbox opens one.  NULL with errno. */
struct sandbox_worker;
struct sandbox_worker *sandbox_worker_open(struct sandbox *s);
void sandbox_worker_close(struct sandbox_worker *w);

enum sandbox_end {
	SANDBOX_DONE,	 /* there is an answer; of anything but its size nothing is known */
	SANDBOX_FAULT,	 /* `why`: the input made its worker crash or hang, or do what is forbidden */
	SANDBOX_STOPPED, /* `why`: says nothing of the input; going on makes no sense */
};

struct sandbox_job {
	void *message; /* message_bytes: the request; the answer if it is done */
	const uint8_t *in;
	size_t in_bytes;
	uint8_t *out; /* gets the first out_bytes of what comes out */
	size_t out_bytes;
	void (*asked)(void *context, uint64_t bytes); /* for sandbox_ask() */
	void *context;
	char *why;
	size_t why_bytes;
};

/*
 * A fault is only given if a worker that had no input before has it, too.  So it is one of this
 * input, whatever an earlier one left behind.
 */
enum sandbox_end sandbox_run(struct sandbox_worker *w, const struct sandbox_job *job);

/*
 * Did the worker that ran last take half of its memory, or ask for as much?  If not, memory that it
 * could not get is not a matter of its limit, but of the system.
 */
bool sandbox_took_memory(const struct sandbox_worker *w);

/* The worker that ran last had other inputs before?  Then the next run has a new one. */
bool sandbox_renew(struct sandbox_worker *w);

/* ---- sandbox_filter.c ---- */

/*
 * From here on this thread can compute, take and give back memory that is not executable, read and
 * write `fd`, and end.  Any other call raises SIGSYS.  False with errno if the system refuses the
 * filter, and with ENOSYS on a kind of processor that this file has no numbers for.
 */
bool sandbox_filter_load(int fd);

/* The name of a call, or NULL. */
const char *sandbox_filter_name(unsigned number);

/*
 * The memory that a worker process shares with the thread that it works for
 *
 *   this page | what comes out | what goes in
 *
 * The thread alone sets its size, and has room for all of it reserved: a write to it can then not
 * fail.  It believes nothing that stands there: it copies first and looks then.
 */

#define SANDBOX_PAGE_BYTES    4096
#define SANDBOX_MESSAGE_BYTES 1024
#define SANDBOX_IN_MAX	      (UINT64_C(1) << 30)

struct sandbox_page {
	uint64_t in_bytes;
	uint32_t call;					     /* one that was forbidden, + 1; or 0 */
	uint32_t os_code;				     /* why the worker could not send a note and ended; or 0 */
	_Alignas(16) uint8_t message[SANDBOX_MESSAGE_BYTES]; /* the request, then the answer */
};

/* Where what comes in begins, behind what goes out. */
static inline size_t sandbox_page_in(size_t out_bytes)
{
	return SANDBOX_PAGE_BYTES + ((out_bytes + SANDBOX_PAGE_BYTES - 1) & ~(size_t)(SANDBOX_PAGE_BYTES - 1));
}

/* What is sent beside it, through the socket of the two. */
struct sandbox_note {
	uint64_t kind; /* enum sandbox_note_kind */
	uint64_t value;
};

enum sandbox_note_kind {
	NOTE_WORK = 1, /* to the worker: there is a request */
	NOTE_GO,       /* to the worker: what it asked for is there */
	NOTE_READY,    /* from the worker, when it is locked up */
	NOTE_REFUSED,  /* from the worker: it could not be; the value is an errno, 0 for a filter without effect */
	NOTE_DONE,     /* from the worker: there is an answer */
	NOTE_ASK,      /* from the worker: may it have this many bytes? */
};

/* ---- sandbox_process.c ---- */

/* In a worker process: wait until the thread that it works for lets it take that much memory. */
void sandbox_ask(uint64_t bytes);

struct sandbox_server {
	int fd; /* the caller's end of its socket */
	pid_t pid;
};

/* In a new process: close all descriptors but 0, 1, 2 and this one, which is above them. */
bool sandbox_close_others(int keep);

/* Fork it.  The caller has one thread.  False with errno. */
bool sandbox_server_start(struct sandbox_server *s, const struct sandbox_options *opt);
void sandbox_server_stop(struct sandbox_server *s);

/*
 * The caller sees to it that one thread at a time asks.  spawn gives the new process its own copies
 * of the two descriptors; end kills it, waits for it, and says how it had ended.  False with errno.
 */
bool sandbox_server_spawn(struct sandbox_server *s, int fd, int memory_fd, pid_t *pid);
bool sandbox_server_end(struct sandbox_server *s, pid_t pid, int *status);

/*
 * The work of a sandbox
 */

struct sandbox_options {
	/* In the worker process, before it is locked up.  NULL when memory ran out. */
	void *(*begin)(void *context);
	/* In the worker process: `message` is the request and becomes the answer. */
	void (*work)(void *own, void *message, const uint8_t *in, size_t in_bytes, uint8_t *out);
	void *context;
	size_t message_bytes;  /* at most SANDBOX_MESSAGE_BYTES */
	size_t out_bytes;      /* the most that comes out */
	uint64_t memory_bytes; /* that a worker may take beside what it begins with */
	unsigned seconds;      /* of CPU time for one input */
};

#endif
