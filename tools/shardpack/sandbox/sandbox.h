/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.h - work on bytes from strangers, in processes that can do nothing else
 *
 * A worker process has shared memory for what goes in and comes out, one socket to the thread that
 * it works for, and no other descriptor.  A filter of the kernel lets it compute and take memory;
 * rlimits say how much.  If it crashes, hangs or asks for anything else, its input is at fault, and
 * another process takes its place.
 *
 * No process is made out of a process with threads: a server, a process that is forked before there
 * are any, forks all workers.  They end with it, and it ends with its parent, whatever kills that.
 */
#ifndef SHARD_SANDBOX_SANDBOX_H
#define SHARD_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
