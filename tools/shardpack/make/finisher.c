/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finisher.c - completes shards while the next one is being filled
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "libshard/base/turns.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"

#define OTHER_SHOWN_MAX 20

int finisher_fail(struct finisher *f, const struct shard_error *err)
{
	int rc;

	task_lock(&f->threads);
	if (!f->rc)
		f->rc = fail_of_library(err);
	else
		detail("%s", err->message);
	rc = f->rc;
	task_unlock(&f->threads);
	return rc;
}

/* What was built again is not the shard that is there.  The others may be, so go on. */
static int count_other(struct finisher *f, uint64_t shard_idx, struct receipt *r)
{
	task_lock(&f->threads);
	if (f->other_count++ < OTHER_SHOWN_MAX)
		fail(EXIT_MISMATCH,
		     "%s/%05" PRIu64 ".shard: has other bytes than these sources make; if they are the right ones, "
		     "remove it and .shardpack/receipts-*, and build it of them",
		     f->job->out_dir, shard_idx);
	task_unlock(&f->threads);
	receipt_free(r);
	return EXIT_DONE;
}

/*
 * The shard was published: say so in a receipt.  A kill between the two costs a verify, and nothing
 * else.  If the shard was built before and its receipt is still there, both must have the same bytes.
 */
static int leave_receipt(struct finisher *f, uint64_t shard_idx, const struct shard_written *written, struct receipt *r)
{
	const struct job *job = f->job;
	struct receipt before = {0};
	struct shard_error err;
	bool known = false;
	int rc = EXIT_DONE;

	r->file_bytes = written->file_bytes;
	r->record_count = written->record_count;
	r->miss_count = written->miss_count;
	r->read_back = job->read_back;
	memcpy(r->root, written->root, sizeof(r->root));
	memcpy(r->sha256, written->sha256, sizeof(r->sha256));
	if (!receipt_shard_time(job->out_dir, shard_idx, &r->mtime_ns))
		return fail(EXIT_IO, "%s/%05" PRIu64 ".shard: was published, but is not there any more: %s",
			    job->out_dir, shard_idx, strerror(errno));
	if (receipt_find(&job->receipts->before, shard_idx, r, &before, NULL)) {
		if (!receipt_is_same(&before, r))
			rc = receipt_refuse(job->out_dir, shard_idx, job->remedy);
		known = receipt_is_equal(&before, r);
	}
	receipt_free(&before);
	if (!rc && !known && receipt_files_add(job->receipts, shard_idx, r, &err) != SHARD_OK)
		rc = finisher_fail(f, &err);
	if (!rc)
		detail("shard %05" PRIu64 ": %" PRIu64 " records, %" PRIu64 " bytes%s", shard_idx, r->record_count,
		       r->file_bytes,
		       !written->already ? ""
		       : job->again	 ? " (the same as it was)"
					 : " (another process wrote it first)");
	return rc;
}

/*
 * Another process published this shard first, with other bytes.  If a file vanished for one of both
 * and not for the other, and they agree on all other inputs, its shard is as good as ours: keep it,
 * and say what is different.
 */
static int accept_other(struct finisher *f, uint64_t shard_idx, const struct shard_error *err, struct receipt *r)
{
	const struct job *job = f->job;
	char path[PLAN_PATH_BYTES_MAX];
	struct receipt_texts now = {.count = 0};
	struct receipt theirs = {0};
	struct plan_input input;
	uint64_t ours_gone = 0, theirs_gone = 0;
	bool there = false, we, they;
	int rc = receipt_texts_read(&now, job->state_dir);

	if (!rc)
		rc = published_find(job, shard_idx, &now, &theirs, &there);
	receipt_texts_free(&now);
	we = receipt_vanished(r, &theirs, &ours_gone);
	they = !rc && there && receipt_vanished(&theirs, r, &theirs_gone);
	if (rc || !there || (!we && !they) || !receipt_agrees(r, &theirs)) {
		receipt_free(&theirs);
		return rc ? rc : finisher_fail(f, err);
	}
	plan_input(job->plan, plan_input_at(job->plan, they ? theirs_gone : ours_gone), &input);
	plan_input_path(job->plan, &input, path);
	task_lock(&f->threads);
	warn("%s/%05" PRIu64 ".shard: another process published it first, and its shard stays: %s/%s vanished for %s "
	     "only",
	     job->out_dir, shard_idx, job->source, path, they ? "that process" : "this one");
	task_unlock(&f->threads);
	receipt_free(r);
	*r = theirs;
	return EXIT_DONE;
}

/* Complete one shard.  The place stays as it is meanwhile, and `r` is its receipt. */
static int finish(struct finisher *f, struct finishing *p, struct receipt *r)
{
	const struct job *job = f->job;
	struct source_words words = {job->source, "the plan", job->remedy};
	struct shard_written written;
	struct shard_error err;
	uint64_t first, count;
	int status, rc = EXIT_DONE;

	plan_shard(job->plan, p->shard_idx, &first, &count);
	if (job->times)
		rc = source_times_check_written(job->times, job->plan, job->source_fd, &words, first, count);
	if (rc)
		return rc;
	turns_take(f->turns);
	status = shard_writer_finish(p->writer, &written, &err);
	turns_give(f->turns);
	if (status == SHARD_OK)
		return leave_receipt(f, p->shard_idx, &written, r);
	if (job->again && status == SHARD_E_EXISTS)
		return count_other(f, p->shard_idx, r);
	if (status == SHARD_E_EXISTS)
		return accept_other(f, p->shard_idx, &err, r);
	if (!f->claims || err.os_code != ENOENT)
		return finisher_fail(f, &err);
	/*
	 * Its temporary file is gone.  Another worker may have taken over while we slept, and builds the
	 * shard.  The claim says whether that is so.
	 */
	task_lock(&f->threads);
	p->is_left = true;
	p->why = err;
	task_unlock(&f->threads);
	return EXIT_DONE;
}

/* With the lock: the first shard that no thread has taken; NULL if there is none. */
static struct finishing *find_work(struct finisher *f)
{
	struct finishing *found = NULL;

	for (unsigned i = 0; i < FINISHER_SHARDS; i++) {
		struct finishing *p = &f->place[i];

		if (p->writer && !p->taken && (!found || p->shard_idx < found->shard_idx))
			found = p;
	}
	return found;
}

static bool complete_next(void *context)
{
	struct finisher *f = context;
	struct finishing *p = find_work(f);
	struct receipt r;
	int rc;

	if (!p)
		return false;
	p->taken = true;
	r = p->receipt;
	memset(&p->receipt, 0, sizeof(p->receipt));
	task_unlock(&f->threads);

	rc = finish(f, p, &r);
	shard_writer_close(p->writer);

	task_lock(&f->threads);
	p->writer = NULL;
	p->taken = false;
	p->result = r;
	p->has_result = !rc;
	if (rc) {
		receipt_free(&p->result);
		f->rc = f->rc ? f->rc : rc;
	}
	task_tell(&f->threads);
	return true;
}

int finisher_start(struct finisher *f, const struct job *job, struct shard_turns *turns, struct claims *claims)
{
	memset(f, 0, sizeof(*f));
	f->job = job;
	f->turns = turns;
	f->claims = claims;
	return task_start(&f->threads, FINISHER_SHARDS, complete_next, f) ? EXIT_DONE
									  : fail(EXIT_IO, "cannot start a thread");
}

/* With the lock, or when all threads have ended: what was done in a place goes into the account. */
static void enter_result(struct finisher *f, struct finishing *p)
{
	uint64_t first, count;

	if (!p->has_result)
		return;
	if (p->is_left) {
		plan_shard(f->job->plan, p->shard_idx, &first, &count);
		f->job->account->input_count -= count;
	} else {
		receipt_count(&p->result, f->job->account);
	}
	receipt_free(&p->result);
	if (f->claims && !claims_ended(f->claims, p->shard_idx, !p->is_left) && !f->rc)
		f->rc = fail_of_library(&p->why);
	p->has_result = p->is_left = false;
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

int finisher_put(struct finisher *f, struct shard_writer *writer, uint64_t shard_idx, struct receipt *receipt)
{
	struct finishing *p;
	int rc;

	task_lock(&f->threads);
	while ((p = find_free(f)) == NULL)
		task_wait(&f->threads);
	rc = f->rc;
	p->writer = writer;
	p->shard_idx = shard_idx;
	p->receipt = *receipt;
	memset(receipt, 0, sizeof(*receipt));
	task_ask(&f->threads);
	task_unlock(&f->threads);
	return rc;
}

int finisher_check(struct finisher *f)
{
	int rc;

	task_lock(&f->threads);
	rc = f->rc;
	task_unlock(&f->threads);
	return rc;
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
	task_lock(&f->threads);
	while (is_busy(f))
		task_wait(&f->threads);
	task_unlock(&f->threads);
	task_stop(&f->threads);
	for (unsigned i = 0; i < FINISHER_SHARDS; i++)
		enter_result(f, &f->place[i]);
	if (!f->rc && f->other_count)
		f->rc = fail(EXIT_MISMATCH, "%s: %" PRIu64 " shard%s other bytes than these sources make",
			     f->job->out_dir, f->other_count, f->other_count == 1 ? " has" : "s have");
	return f->rc;
}
