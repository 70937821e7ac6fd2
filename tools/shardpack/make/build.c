/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - make the shards of a plan that are not there yet
 *
 * Either all that are missing, of this process's part; or those that it claims, one after the
 * other, until none is missing.
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "libshard/base/turns.h"
#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardpack/make/job.h"
#include "tools/shardpack/make/space.h"
#include "tools/shardpack/plan/plan.h"

/* ---- what is there already ---- */

static int survey(struct build *b)
{
	const struct job *job = b->job;
	uint64_t n = 0, part = job->part.count ? job->part.count : 1, there_inputs = 0, there_count = 0, again = 0;
	int code = EXIT_DONE;

	job->account->input_count = 0;
	for (uint64_t k = job->part.idx; code == EXIT_DONE && k < job->plan->shard_count; k += part) {
		struct receipt r = {0};
		bool there;

		code = interrupted() ? EXIT_INTERRUPTED : published_find(job, k, &job->receipts->before, &r, &there);
		if (code != EXIT_DONE) {
			receipt_free(&r);
			break;
		}
		plan_shard(job->plan, k, &b->ranges[n].first, &b->ranges[n].count);
		job->account->input_count += b->ranges[n].count;
		if (there && !job->again) {
			there_inputs += b->ranges[n].count;
			there_count++;
			code = receipt_account(&r, job->plan, job->account);
		} else {
			/* One that is there needs room until it was compared. */
			b->todo[k] = !there || again++ < FINISHER_SHARDS + 2;
			b->shard_of_range[n++] = k;
		}
		receipt_free(&r);
	}
	b->todo_count = n;
	b->again_count = again;
	if (code == EXIT_DONE && again)
		note("%s: building %" PRIu64 " of %" PRIu64 " shard%s again, to compare them", job->out_dir, again, n,
		     n == 1 ? "" : "s");
	if (code == EXIT_DONE && there_count)
		note("%s: %" PRIu64 " of %" PRIu64 " shard%s %s there already%s", job->out_dir, there_count,
		     n + there_count, n + there_count == 1 ? "" : "s", there_count == 1 ? "is" : "are",
		     n ? "; continuing" : "");
	progress_start(&b->progress, "packing", plan_names_inputs(job->plan) ? "images" : "records",
		       job->account->input_count);
	progress_resume(&b->progress, there_inputs, 0);
	return code;
}

/* With `range_count` ranges at most. */
static int fill_all(struct build *b, uint64_t range_count)
{
	/* The finisher comes first: with few threads workers can be fewer, but not the finisher. */
	int code = finisher_start(&b->finisher, b->job, b->turns), finished;

	if (code != EXIT_DONE)
		return code;
	if (b->claims) {
		b->finisher.ended = claims_ended;
		b->finisher.context = b->claims;
	}
	code = filling_run(b, range_count);
	shard_writer_close(b->next_writer); /* NULL, unless it went wrong */
	b->next_writer = NULL;
	finished = finisher_stop(&b->finisher);
	/* To run again, as EXIT_STOPPED asks for, is no remedy for what went wrong here. */
	return finished != EXIT_DONE && (code == EXIT_DONE || code == EXIT_STOPPED) ? finished : code;
}

/* All that is not there yet, of this process's part. */
static int build_part(struct build *b)
{
	const struct job *job = b->job;
	int code = survey(b);

	if (code == EXIT_DONE && b->todo_count) {
		code = job->look_only ? EXIT_DONE : space_check(job, space_needed(job, b->todo));
		if (code == EXIT_DONE)
			code = fill_all(b, b->todo_count);
	}
	return code;
}

/* What may be claimed: b->ranges has it all, until shards are. */
static uint64_t all_missing(struct build *b)
{
	uint64_t n = 0;

	for (uint64_t k = 0; k < b->job->plan->shard_count; k++)
		if (claims_is_missing(b->claims, k)) {
			plan_shard(b->job->plan, k, &b->ranges[n].first, &b->ranges[n].count);
			n++;
		}
	b->todo_count = 0;
	return n;
}

/* What can be claimed, again and again while others leave something. */
static int build_claimed(struct build *b)
{
	const struct job *job = b->job;
	uint64_t inputs = 0, most;
	bool more = false;
	int code = claims_open(&b->claims, job), told;

	if (code == EXIT_DONE)
		code = claims_mark_open(b->claims, b->todo);
	if (code == EXIT_DONE)
		code = space_check(job, space_needed(job, b->todo));
	if (code == EXIT_DONE) {
		most = all_missing(b);
		for (uint64_t i = 0; i < most; i++)
			inputs += b->ranges[i].count;
		progress_start(&b->progress, "packing", plan_names_inputs(job->plan) ? "images" : "records", inputs);
		code = claims_wait(b->claims, &more);
	}
	while (code == EXIT_DONE && more) {
		code = fill_all(b, all_missing(b));
		more = false;
		if (code == EXIT_DONE && !job->account->unreadable)
			code = claims_wait(b->claims, &more);
	}
	if (code == EXIT_DONE) {
		told = claims_tell(b->claims, &b->is_complete);
		code = account_failed(job->account) ? code : told;
	}
	claims_close(b->claims);
	return code;
}

static bool allocate(struct build *b)
{
	const struct plan *plan = b->job->plan;

	recipe_provenance(&plan->recipe, plan->digest, &b->provenance);
	b->todo = calloc(plan->shard_count + 1, sizeof(*b->todo));
	b->ranges = calloc(plan->shard_count + 1, sizeof(*b->ranges));
	b->shard_of_range = calloc(plan->shard_count + 1, sizeof(*b->shard_of_range));
	b->turns = turns_open(b->job->worker_count);
	return b->todo && b->ranges && b->shard_of_range && b->turns && !text_failed(&b->provenance) &&
	       shard_tally_open(&b->tally, &b->job->schema, NULL) == SHARD_OK;
}

/* What killed processes left behind, as far as we can know that it is nobody's. */
static int remove_left(const struct job *job)
{
	struct shard_error err;

	if (shard_remove_temps(job->out_dir, NULL, &err) != SHARD_OK ||
	    (shard_remove_temps(job->state_dir, NULL, &err) != SHARD_OK && err.os_code != ENOENT))
		return fail_of_library(&err);
	return EXIT_DONE;
}

/*
 * No shard is missing.  If the dataset was sealed while we slept, that process could not remove
 * files that we had open; else sealing removes what is left, once for all workers.
 */
static int leave(const struct job *job)
{
	return output_is_sealed(job->out_dir, job->plan) ? output_clear_state(job) : EXIT_DONE;
}

/* Inputs that could not be read are told even of a run that was asked to stop. */
static int judge(const struct job *job, int code)
{
	bool bad_fails = code == EXIT_DONE && job->plan->recipe.on_error == ON_ERROR_FAIL;
	int judged = account_judge(job->account, bad_fails, job->anew);

	return judged == EXIT_DONE ? code : judged;
}

int build_run(const struct job *job)
{
	struct build b = {.job = job};
	int code = EXIT_DONE;

	if (!allocate(&b))
		code = fail(EXIT_IO, "out of memory for %" PRIu64 " shards", job->plan->shard_count);
	/* Other machines may not see our locks, so with claims it is left to sealing. */
	if (code == EXIT_DONE && !job->look_only && !job->worker)
		code = remove_left(job);
	if (code == EXIT_DONE && !job->look_only)
		code = receipt_files_read(job->receipts, job->state_dir);
	if (code == EXIT_DONE)
		code = job->worker ? build_claimed(&b) : build_part(&b);
	if (code == EXIT_DONE && b.is_complete)
		code = leave(job);
	if (code == EXIT_DONE && (b.todo_count || (job->worker && b.progress.count)))
		progress_finish(&b.progress);
	else
		progress_abandon(&b.progress);
	if (code == EXIT_DONE || code == EXIT_STOPPED)
		code = judge(job, code);
	if (code == EXIT_DONE && b.again_count)
		note("%s: %" PRIu64 " shards have the bytes that these sources make", job->out_dir, b.again_count);
	text_free(&b.provenance);
	receipt_free(&b.receipt);
	free(b.todo);
	free(b.ranges);
	free(b.shard_of_range);
	shard_tally_close(b.tally);
	turns_close(b.turns);
	return code;
}
