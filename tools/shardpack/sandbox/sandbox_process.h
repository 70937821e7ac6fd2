/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_process.h - the worker process: locks itself up, and works
 */
#ifndef SHARD_SANDBOX_SANDBOX_PROCESS_H
#define SHARD_SANDBOX_SANDBOX_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

struct sandbox_options;

/* In a worker process: wait until the thread that it works for lets it take so much memory. */
void sandbox_ask(uint64_t bytes);

/* Never returns.  `fd` is the socket, `memory_fd` the shared memory, `parent` who forked it. */
_Noreturn void sandbox_process_run(const struct sandbox_options *opt, int fd, int memory_fd, pid_t parent);

/*
 * No handlers of the parent.  Signals that ask a command to stop are ignored: schedulers send them
 * to all processes of a job, and a decoder that they ended would be missing for the shard that the
 * command finishes.
 */
void sandbox_process_reset_signals(void);

/* Close all descriptors but 0, 1, 2 and these two; -1 is none. */
void sandbox_process_keep(int a, int b);

#endif
