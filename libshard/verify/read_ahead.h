/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_ahead.h - a thread that reads part of a file into a buffer while another uses the bytes that
 * are there already
 *
 * Reading past the page cache leaves the CPU idle, and hashing leaves the disk idle: one after the
 * other they take the sum of both times, side by side the longer one.
 */
#ifndef SHARD_VERIFY_READ_AHEAD_H
#define SHARD_VERIFY_READ_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "shard.h"

#define READ_AHEAD_STEP_BYTES ((size_t)4 << 20) /* the buffer becomes usable in steps of this size */

struct read_ahead_job {
	int fd, direct_fd; /* direct_fd may be -1; whatever it refuses is read through fd */
	uint8_t *buffer;   /* page-aligned */
	uint64_t offset;   /* in the file; page-aligned */
	size_t bytes;
	const char *path; /* for messages; must outlive the job */
};

/* Read it all, now, in this thread. */
int read_ahead_now(const struct read_ahead_job *job, struct shard_error *err);

struct read_ahead;

/*
 * NULL if there is no memory or no thread: do without, with read_ahead_now().  Belongs to one
 * thread at a time.
 */
struct read_ahead *read_ahead_open(void);
void read_ahead_close(struct read_ahead *f);

void read_ahead_start(struct read_ahead *f, const struct read_ahead_job *job);

/* Wait until the first `bytes` of the job are there.  Fails as reading did. */
int read_ahead_wait(struct read_ahead *f, size_t bytes, struct shard_error *err);

/* Have the job ended, complete or not: buffer and files are the caller's again.  NULL is fine. */
void read_ahead_end(struct read_ahead *f);

#endif
