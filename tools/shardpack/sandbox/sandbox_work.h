/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_work.h - the work of a sandbox
 */
#ifndef SHARD_SANDBOX_SANDBOX_WORK_H
#define SHARD_SANDBOX_SANDBOX_WORK_H

#include <stddef.h>
#include <stdint.h>

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
