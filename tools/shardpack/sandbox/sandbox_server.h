/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_server.h - the process that forks workers, and ends them
 */
#ifndef SHARD_SANDBOX_SANDBOX_SERVER_H
#define SHARD_SANDBOX_SANDBOX_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct sandbox_options;

struct sandbox_server {
	int fd; /* the caller's end of its socket */
	pid_t pid;
};

/* Fork it.  The caller has one thread.  False with errno. */
bool sandbox_server_start(struct sandbox_server *s, const struct sandbox_options *opt);
void sandbox_server_stop(struct sandbox_server *s);

/*
 * The caller sees to it that one thread at a time asks.  spawn gives the new process its own copies
 * of the two descriptors; end kills it, waits for it, and says how it had ended.  False with errno.
 */
bool sandbox_server_spawn(struct sandbox_server *s, int fd, int memory_fd, pid_t *pid);
bool sandbox_server_end(struct sandbox_server *s, pid_t pid, int *status);

#endif
