/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_ahead.c - one thread, one job at a time
 */
#include "libshard/verify/verify.h"

#include "libshard/base/bytes.h"
#include "libshard/base/mem.h"
#include "libshard/base/thread.h"
#include "libshard/io/io.h"

struct read_ahead {
	struct task task;	   /* asked: there is a job; told: more is there, or the job ended */
	struct read_ahead_job job; /* constant while busy */
	bool busy;		   /* lock: set by the user, cleared by the thread */
	bool cancelled;		   /* lock: what is not read yet is not wanted */
	size_t there;		   /* lock: bytes of the job that can be used */
	int rc;			   /* lock: how reading went */
	struct shard_error why;	   /* if rc is not 0 */
};

static int read_part(const struct read_ahead_job *job, size_t at, size_t bytes, struct shard_error *err)
{
	int rc = SHARD_E_IO;

	if (job->direct_fd >= 0)
		rc = file_read_at(job->direct_fd, job->buffer + at, bytes, job->offset + at, job->path, NULL);
	if (rc) /* no such way, or it failed: the ordinary one, whose error counts */
		rc = file_read_at(job->fd, job->buffer + at, bytes, job->offset + at, job->path, err);
	return rc;
}

int read_ahead_now(const struct read_ahead_job *job, struct shard_error *err)
{
	return read_part(job, 0, job->bytes, err);
}

static bool do_job(void *context)
{
	struct read_ahead *f = context;

	if (!f->busy)
		return false;
	while (!f->cancelled && !f->rc && f->there < f->job.bytes) {
		size_t at = f->there, bytes = (size_t)min_u64(READ_AHEAD_STEP_BYTES, f->job.bytes - at);
		int rc;

		task_unlock(&f->task);
		rc = read_part(&f->job, at, bytes, &f->why);
		task_lock(&f->task);
		f->rc = rc;
		f->there += rc ? 0 : bytes;
		task_tell(&f->task);
	}
	f->busy = false;
	task_tell(&f->task);
	return true;
}

struct read_ahead *read_ahead_open(void)
{
	struct read_ahead *f = mem_zalloc(sizeof(*f));

	if (!f || task_start(&f->task, 1, do_job, f))
		return f;
	task_stop(&f->task);
	mem_free(f);
	return NULL;
}

void read_ahead_close(struct read_ahead *f)
{
	if (!f)
		return;
	read_ahead_end(f);
	task_stop(&f->task);
	mem_free(f);
}

void read_ahead_start(struct read_ahead *f, const struct read_ahead_job *job)
{
	read_ahead_end(f);
	task_lock(&f->task);
	f->job = *job;
	f->there = 0;
	f->rc = SHARD_OK;
	f->cancelled = false;
	f->busy = true;
	task_ask(&f->task);
	task_unlock(&f->task);
}

int read_ahead_wait(struct read_ahead *f, size_t bytes, struct shard_error *err)
{
	int rc = SHARD_OK;

	task_lock(&f->task);
	while (f->there < bytes && !f->rc)
		task_wait(&f->task);
	if (f->there < bytes) {
		rc = f->rc;
		if (err)
			*err = f->why;
	}
	task_unlock(&f->task);
	return rc;
}

void read_ahead_end(struct read_ahead *f)
{
	if (!f)
		return;
	task_lock(&f->task);
	f->cancelled = true;
	while (f->busy)
		task_wait(&f->task);
	task_unlock(&f->task);
}
