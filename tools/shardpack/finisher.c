/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finisher.c - completes one shard while the next one is being filled
 */
#include "tools/shardpack/finisher.h"

#include <inttypes.h>
#include <string.h>

#include "tools/common/message.h"

int finisher_fail(struct finisher *f, const struct shard_error *err)
{
	int code;

	pthread_mutex_lock(&f->lock);
	if (f->code == EXIT_DONE)
		f->code = fail(exit_code_of_status(err->status), "%s", err->message);
	else
		detail("%s", err->message);
	code = f->code;
	pthread_mutex_unlock(&f->lock);
	return code;
}

/* Publish the shard, then say so in a receipt.  A kill between the two costs a verify, and nothing else. */
static int finish_one(struct finisher *f, struct shard_writer *writer, uint64_t shard_idx, struct receipt *r)
{
	struct shard_written written;
	struct shard_error err;

	if (shard_writer_finish(writer, &written, &err) != SHARD_OK)
		return finisher_fail(f, &err);
	r->file_bytes = written.file_bytes;
	r->record_count = written.record_count;
	r->miss_count = written.miss_count;
	memcpy(r->root, written.root, sizeof(r->root));
	memcpy(r->sha256, written.sha256, sizeof(r->sha256));
	if (receipt_write(f->state_dir, shard_idx, r, &err) != SHARD_OK)
		return finisher_fail(f, &err);
	detail("shard %05" PRIu64 ": %" PRIu64 " records, %" PRIu64 " bytes%s", shard_idx, r->record_count,
	       r->file_bytes, written.already ? " (another process had it)" : "");
	return EXIT_DONE;
}

static void *run(void *context)
{
	struct finisher *f = context;

	pthread_mutex_lock(&f->lock);
	for (;;) {
		struct receipt r = {0};
		int code;

		while (!f->writer && !f->stop)
			pthread_cond_wait(&f->changed, &f->lock);
		if (!f->writer)
			break;
		r.misses = f->misses;
		memset(&f->misses, 0, sizeof(f->misses));
		pthread_mutex_unlock(&f->lock);

		/* The writer and its number stay as they are until this thread changes them. */
		code = finish_one(f, f->writer, f->shard_idx, &r);
		shard_writer_close(f->writer);

		pthread_mutex_lock(&f->lock);
		f->writer = NULL;
		f->result = r;
		f->has_result = code == EXIT_DONE;
		if (code != EXIT_DONE) {
			receipt_free(&f->result);
			if (f->code == EXIT_DONE)
				f->code = code;
		}
		pthread_cond_broadcast(&f->changed);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

int finisher_start(struct finisher *f, const char *state_dir, bool quarantines, struct account *account)
{
	memset(f, 0, sizeof(*f));
	f->state_dir = state_dir;
	f->quarantines = quarantines;
	f->account = account;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	if (pthread_create(&f->thread, NULL, run, f) == 0)
		return EXIT_DONE;
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	return fail(EXIT_IO, "a thread could not be started");
}

/* With the lock.  The thread has nothing to do afterwards; what it did is in the account. */
static void wait_idle(struct finisher *f)
{
	while (f->writer)
		pthread_cond_wait(&f->changed, &f->lock);
	if (f->has_result) {
		uint64_t misses = f->result.miss_count;

		account_published(f->account, f->result.record_count, f->quarantines ? 0 : misses,
				  f->quarantines ? misses : 0);
		receipt_free(&f->result);
		f->has_result = false;
	}
}

int finisher_put(struct finisher *f, struct shard_writer *writer, uint64_t shard_idx, struct text *misses)
{
	int code;

	pthread_mutex_lock(&f->lock);
	wait_idle(f);
	code = f->code;
	f->writer = writer;
	f->shard_idx = shard_idx;
	f->misses = *misses;
	memset(misses, 0, sizeof(*misses));
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return code;
}

int finisher_check(struct finisher *f)
{
	int code;

	pthread_mutex_lock(&f->lock);
	code = f->code;
	pthread_mutex_unlock(&f->lock);
	return code;
}

int finisher_stop(struct finisher *f)
{
	pthread_mutex_lock(&f->lock);
	wait_idle(f);
	f->stop = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	return f->code;
}
