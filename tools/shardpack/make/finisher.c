/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finisher.c - completes shards while the next one is being filled
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "libshard/base/turns.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"

#define OTHER_SHOWN_MAX 20

int finisher_fail(struct finisher *f, const struct shard_error *err)
{
	int code;

	task_lock(&f->threads);
	if (f->code == EXIT_DONE)
		f->code = fail_of_library(err);
	else
		detail("%s", err->message);
	code = f->code;
	task_unlock(&f->threads);
	return code;
}

/*
 * If the shard was built before and its receipt is still there, both must have the same bytes.
 * *known: that receipt says all that this one says.
 */
static int compare_before(const struct job *job, uint64_t shard_idx, const struct receipt *r, bool *known)
{
	struct receipt before = {0};
	bool found = receipt_find(&job->receipts->before, shard_idx, r, &before, NULL);
	int code = EXIT_DONE;

	if (found && !receipt_is_same(&before, r))
		code = receipt_refuse(job->out_dir, shard_idx, job->remedy);
	*known = code == EXIT_DONE && found && receipt_is_equal(&before, r);
	receipt_free(&before);
	return code;
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

/* Not if its sources have changed meanwhile. */
static int check_sources(const struct job *job, uint64_t shard_idx)
{
	struct source_words words = {job->source, "the plan", job->remedy};
	uint64_t first, count;

	plan_shard(job->plan, shard_idx, &first, &count);
	return job->times ? source_times_check_written(job->times, job->plan, job->source_fd, &words, first, count)
			  : EXIT_DONE;
}

/*
 * The shard was published: say so in a receipt.  A kill between the two costs a verify, and nothing
 * else.
 */
static int leave_receipt(struct finisher *f, uint64_t shard_idx, const struct shard_written *written, struct receipt *r)
{
	const struct job *job = f->job;
	struct shard_error err;
	bool known;
	int code;

	r->file_bytes = written->file_bytes;
	r->record_count = written->record_count;
	r->miss_count = written->miss_count;
	r->read_back = job->read_back;
	memcpy(r->root, written->root, sizeof(r->root));
	memcpy(r->sha256, written->sha256, sizeof(r->sha256));
	if (!receipt_shard_time(job->out_dir, shard_idx, &r->mtime_ns))
		return fail(EXIT_IO, "%s/%05" PRIu64 ".shard: was published, but is not there any more: %s",
			    job->out_dir, shard_idx, strerror(errno));
	code = compare_before(job, shard_idx, r, &known);
	if (code != EXIT_DONE)
		return code;
	if (!known && receipt_files_add(job->receipts, shard_idx, r, &err) != SHARD_OK)
		return finisher_fail(f, &err);
	detail("shard %05" PRIu64 ": %" PRIu64 " records, %" PRIu64 " bytes%s", shard_idx, r->record_count,
	       r->file_bytes,
	       !written->already ? ""
	       : job->again	 ? " (the same as it was)"
				 : " (another process wrote it first)");
	return EXIT_DONE;
}

/*
 * Another process published this shard first, with other bytes.  If a file vanished for one of both
 * and not for the other, and they agree on all other inputs, its shard is as good as ours: keep it,
 * and say what is different.
 */
static int settle_other(struct finisher *f, uint64_t shard_idx, const struct shard_error *err, struct receipt *r)
{
	const struct job *job = f->job;
	char path[PLAN_PATH_BYTES_MAX];
	struct receipt_texts now = {.count = 0};
	struct receipt theirs = {0};
	struct plan_input input;
	uint64_t ours_gone = 0, theirs_gone = 0;
	bool there = false, we, they;
	int code = receipt_texts_read(&now, job->state_dir);

	if (code == EXIT_DONE)
		code = published_find(job, shard_idx, &now, &theirs, &there);
	receipt_texts_free(&now);
	we = receipt_vanished(r, &theirs, &ours_gone);
	they = code == EXIT_DONE && there && receipt_vanished(&theirs, r, &theirs_gone);
	if (code != EXIT_DONE || !there || (!we && !they) || !receipt_agrees(r, &theirs)) {
		receipt_free(&theirs);
		return code == EXIT_DONE ? finisher_fail(f, err) : code;
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

/*
 * Its temporary file is gone.  With claims, another worker may have taken over while we slept, and
 * builds the shard.  The claim says whether that is so.
 */
static int leave_to_other(struct finisher *f, struct finishing *p, const struct shard_error *why)
{
	task_lock(&f->threads);
	p->is_left = true;
	p->why = *why;
	task_unlock(&f->threads);
	return EXIT_DONE;
}

/* Complete one shard.  The place stays as it is meanwhile, and `r` is its receipt. */
static int finish(struct finisher *f, struct finishing *p, struct receipt *r)
{
	struct shard_written written;
	struct shard_error err;
	int code = check_sources(f->job, p->shard_idx), rc;

	if (code != EXIT_DONE)
		return code;
	turns_take(f->turns);
	rc = shard_writer_finish(p->writer, &written, &err);
	turns_give(f->turns);
	if (rc == SHARD_OK)
		return leave_receipt(f, p->shard_idx, &written, r);
	if (f->job->again && rc == SHARD_E_EXISTS)
		return count_other(f, p->shard_idx, r);
	if (rc == SHARD_E_EXISTS)
		return settle_other(f, p->shard_idx, &err, r);
	if (f->ended && err.os_code == ENOENT)
		return leave_to_other(f, p, &err);
	return finisher_fail(f, &err);
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
	int code;

	if (!p)
		return false;
	p->taken = true;
	r = p->receipt;
	memset(&p->receipt, 0, sizeof(p->receipt));
	task_unlock(&f->threads);

	code = finish(f, p, &r);
	shard_writer_close(p->writer);

	task_lock(&f->threads);
	p->writer = NULL;
	p->taken = false;
	p->result = r;
	p->has_result = code == EXIT_DONE;
	if (code != EXIT_DONE) {
		receipt_free(&p->result);
		f->code = f->code == EXIT_DONE ? code : f->code;
	}
	task_tell(&f->threads);
	return true;
}

int finisher_start(struct finisher *f, const struct job *job, struct shard_turns *turns)
{
	memset(f, 0, sizeof(*f));
	f->job = job;
	f->turns = turns;
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
	if (f->ended && !f->ended(f->context, p->shard_idx, !p->is_left) && f->code == EXIT_DONE)
		f->code = fail_of_library(&p->why);
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
	int code;

	task_lock(&f->threads);
	while ((p = find_free(f)) == NULL)
		task_wait(&f->threads);
	code = f->code;
	p->writer = writer;
	p->shard_idx = shard_idx;
	p->receipt = *receipt;
	memset(receipt, 0, sizeof(*receipt));
	task_ask(&f->threads);
	task_unlock(&f->threads);
	return code;
}

int finisher_check(struct finisher *f)
{
	int code;

	task_lock(&f->threads);
	code = f->code;
	task_unlock(&f->threads);
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
	task_lock(&f->threads);
	while (is_busy(f))
		task_wait(&f->threads);
	task_unlock(&f->threads);
	task_stop(&f->threads);
	for (unsigned i = 0; i < FINISHER_SHARDS; i++)
		enter_result(f, &f->place[i]);
	if (f->code == EXIT_DONE && f->other_count)
		f->code = fail(EXIT_MISMATCH, "%s: %" PRIu64 " shard%s other bytes than these sources make",
			       f->job->out_dir, f->other_count, f->other_count == 1 ? " has" : "s have");
	return f->code;
}
