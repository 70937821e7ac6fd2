/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill.c - one thread, one job at a time
 */
#include "libshard/store/read/fill.h"

#include <pthread.h>
#include <stdbool.h>

#include "libshard/base/bytes.h"
#include "libshard/base/mem.h"
#include "libshard/io/file.h"

struct fill {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t asked; /* with lock: there is a job, or stop was set */
	pthread_cond_t told;  /* with lock: more is there, or the job ended */
	struct fill_job job;  /* constant while busy */
	bool busy;	      /* lock: set by the user, cleared by the thread */
	bool cancelled;	      /* lock: what is not read yet is not wanted */
	bool stop;	      /* lock: set once */
	size_t there;	      /* lock: bytes of the job that can be used */
	int rc;		      /* lock: how reading went */
	struct shard_error why; /* if rc is not 0 */
};

static int read_part(const struct fill_job *job, size_t at, size_t bytes, struct shard_error *err)
{
	int rc = SHARD_E_IO;

	if (job->direct_fd >= 0)
		rc = file_read_at(job->direct_fd, job->buffer + at, bytes, job->offset + at, job->path, NULL);
	if (rc) /* no such way, or it failed: the ordinary one, whose error counts */
		rc = file_read_at(job->fd, job->buffer + at, bytes, job->offset + at, job->path, err);
	return rc;
}

int fill_now(const struct fill_job *job, struct shard_error *err)
{
	return read_part(job, 0, job->bytes, err);
}

static void do_job(struct fill *f)
{
	while (!f->cancelled && !f->rc && f->there < f->job.bytes) {
		size_t at = f->there, bytes = (size_t)min_u64(FILL_STEP_BYTES, f->job.bytes - at);
		int rc;

		pthread_mutex_unlock(&f->lock);
		rc = read_part(&f->job, at, bytes, &f->why);
		pthread_mutex_lock(&f->lock);
		f->rc = rc;
		f->there += rc ? 0 : bytes;
		pthread_cond_signal(&f->told);
	}
}

static void *fill_main(void *context)
{
	struct fill *f = context;

	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		if (!f->busy) {
			pthread_cond_wait(&f->asked, &f->lock);
			continue;
		}
		do_job(f);
		f->busy = false;
		pthread_cond_signal(&f->told);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

struct fill *fill_open(void)
{
	struct fill *f = mem_zalloc(sizeof(*f));

	if (!f)
		return NULL;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->asked, NULL);
	pthread_cond_init(&f->told, NULL);
	if (!pthread_create(&f->thread, NULL, fill_main, f))
		return f;
	pthread_cond_destroy(&f->told);
	pthread_cond_destroy(&f->asked);
	pthread_mutex_destroy(&f->lock);
	mem_free(f);
	return NULL;
}

void fill_close(struct fill *f)
{
	if (!f)
		return;
	fill_end(f);
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->asked);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->told);
	pthread_cond_destroy(&f->asked);
	pthread_mutex_destroy(&f->lock);
	mem_free(f);
}

void fill_start(struct fill *f, const struct fill_job *job)
{
	fill_end(f);
	pthread_mutex_lock(&f->lock);
	f->job = *job;
	f->there = 0;
	f->rc = SHARD_OK;
	f->cancelled = false;
	f->busy = true;
	pthread_cond_signal(&f->asked);
	pthread_mutex_unlock(&f->lock);
}

int fill_wait(struct fill *f, size_t bytes, struct shard_error *err)
{
	int rc = SHARD_OK;

	pthread_mutex_lock(&f->lock);
	while (f->there < bytes && !f->rc)
		pthread_cond_wait(&f->told, &f->lock);
	if (f->there < bytes) {
		rc = f->rc;
		if (err)
			*err = f->why;
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

void fill_end(struct fill *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->cancelled = true;
	while (f->busy)
		pthread_cond_wait(&f->told, &f->lock);
	pthread_mutex_unlock(&f->lock);
}
