/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finisher.c - completes shards while the next one is being filled
 */
#include "tools/shardpack/build/finisher.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/background.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/build/job.h"
#include "tools/shardpack/build/receipt.h"
#include "tools/shardpack/convert/account.h"
#include "tools/shardpack/input/origin_check.h"
#include "tools/shardpack/plan/plan.h"

int finisher_fail(struct finisher *f, const struct shard_error *err)
{
	int code;

	background_lock(&f->threads);
	if (f->code == EXIT_DONE)
		f->code = fail(exit_code_of_status(err->status), "%s", err->message);
	else
		detail("%s", err->message);
	code = f->code;
	background_unlock(&f->threads);
	return code;
}

/* If the shard was built before and its receipt is still there, both must have the same bytes. */
static int compare_before(const struct job *job, uint64_t shard_idx, const struct receipt *r)
{
	struct receipt before = {0};
	bool found = false;
	int code = receipt_read(job->state_dir, shard_idx, &before, &found);

	if (code == EXIT_DONE && found && !receipt_is_same(&before, r))
		code = receipt_refuse(job->out_dir, shard_idx);
	receipt_free(&before);
	return code;
}

/*
 * Publish the shard, then say so in a receipt.  A kill between the two costs a verify, and nothing
 * else.
 */
static int finish_one(struct finisher *f, struct shard_writer *writer, uint64_t shard_idx, struct receipt *r)
{
	const struct job *job = f->job;
	struct shard_written written;
	struct shard_error err;
	uint64_t first, count;
	int code = EXIT_DONE;

	plan_shard(job->plan, shard_idx, &first, &count);
	if (job->origin)
		code = origin_check_written(job->origin, job->plan, job->source_fd, job->source, first, count);
	if (code != EXIT_DONE)
		return code;
	shard_turns_take(f->turns);
	code = shard_writer_finish(writer, &written, &err) == SHARD_OK ? EXIT_DONE : EXIT_IO;
	shard_turns_give(f->turns);
	if (code != EXIT_DONE)
		return finisher_fail(f, &err);
	r->file_bytes = written.file_bytes;
	r->record_count = written.record_count;
	r->miss_count = written.miss_count;
	memcpy(r->root, written.root, sizeof(r->root));
	memcpy(r->sha256, written.sha256, sizeof(r->sha256));
	if (!receipt_shard_time(job->out_dir, shard_idx, &r->mtime_ns))
		return fail(EXIT_IO, "%s/%05" PRIu64 ".shard: was published, but is not there any more: %s",
			    job->out_dir, shard_idx, strerror(errno));
	code = compare_before(job, shard_idx, r);
	if (code != EXIT_DONE)
		return code;
	if (receipt_write(job->state_dir, shard_idx, r, &err) != SHARD_OK)
		return finisher_fail(f, &err);
	detail("shard %05" PRIu64 ": %" PRIu64 " records, %" PRIu64 " bytes%s", shard_idx, r->record_count,
	       r->file_bytes, written.already ? " (another process wrote it first)" : "");
	return EXIT_DONE;
}

/* With the lock: a shard that no thread has taken; NULL if there is none. */
static struct finishing *find_work(struct finisher *f)
{
	for (unsigned i = 0; i < FINISHER_SHARDS; i++)
		if (f->place[i].writer && !f->place[i].taken)
			return &f->place[i];
	return NULL;
}

static bool complete_next(void *context)
{
	struct finisher *f = context;
	struct finishing *p = find_work(f);
	struct receipt r = {0};
	int code;

	if (!p)
		return false;
	p->taken = true;
	r.lines = p->lines;
	memset(&p->lines, 0, sizeof(p->lines));
	background_unlock(&f->threads);

	/* The writer and its number stay as they are until this thread changes them. */
	code = finish_one(f, p->writer, p->shard_idx, &r);
	shard_writer_close(p->writer);

	background_lock(&f->threads);
	p->writer = NULL;
	p->taken = false;
	p->result = r;
	p->has_result = code == EXIT_DONE;
	if (code != EXIT_DONE) {
		receipt_free(&p->result);
		if (f->code == EXIT_DONE)
			f->code = code;
	}
	background_tell(&f->threads);
	return true;
}

int finisher_start(struct finisher *f, const struct job *job, struct shard_turns *turns)
{
	memset(f, 0, sizeof(*f));
	f->job = job;
	f->turns = turns;
	return background_start(&f->threads, FINISHER_SHARDS, complete_next, f)
		       ? EXIT_DONE
		       : fail(EXIT_IO, "cannot start a thread");
}

/* With the lock, or when all threads have ended: what was done in a place goes into the account. */
static void enter_result(struct finisher *f, struct finishing *p)
{
	uint64_t misses = p->result.miss_count;

	if (!p->has_result)
		return;
	account_published(f->job->account, p->result.record_count, receipt_accepted_count(&p->result),
			  f->job->quarantine ? 0 : misses, f->job->quarantine ? misses : 0);
	receipt_free(&p->result);
	p->has_result = false;
}

/* With the lock: a place without a shard; NULL if there is none. */
static struct finishing *find_free(struct finisher *f)
{
	for (unsigned i = 0; i < FINISHER_SHARDS; i++)
		if (!f->place[i].writer) {
			enter_result(f, &f->place[i]);
			return &f->place[i];
		}
	return NULL;
}

int finisher_put(struct finisher *f, struct shard_writer *writer, uint64_t shard_idx, struct text *lines)
{
	struct finishing *p;
	int code;

	background_lock(&f->threads);
	while ((p = find_free(f)) == NULL)
		background_wait(&f->threads);
	code = f->code;
	p->writer = writer;
	p->shard_idx = shard_idx;
	p->lines = *lines;
	memset(lines, 0, sizeof(*lines));
	background_ask(&f->threads);
	background_unlock(&f->threads);
	return code;
}

int finisher_check(struct finisher *f)
{
	int code;

	background_lock(&f->threads);
	code = f->code;
	background_unlock(&f->threads);
	return code;
}

/* With the lock. */
static bool is_busy(const struct finisher *f)
{
	for (unsigned i = 0; i < FINISHER_SHARDS; i++)
		if (f->place[i].writer)
			return true;
	return false;
}

int finisher_stop(struct finisher *f)
{
	background_lock(&f->threads);
	while (is_busy(f))
		background_wait(&f->threads);
	background_unlock(&f->threads);
	background_stop(&f->threads);
	for (unsigned i = 0; i < FINISHER_SHARDS; i++)
		enter_result(f, &f->place[i]);
	return f->code;
}
