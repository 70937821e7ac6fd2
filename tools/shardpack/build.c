/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - make the shards of a plan that are not there yet
 *
 * One thread, this one, takes results in order and fills the writers.  Bad inputs do not
 * stop it when they only spoil their own shard: the run goes on, so that the user sees all
 * of them at once.
 */
#include "tools/shardpack/build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardpack/files.h"
#include "tools/shardpack/finisher.h"
#include "tools/shardpack/pipeline.h"
#include "tools/shardpack/published.h"
#include "tools/shardpack/space.h"

struct build {
	const struct job *job;
	struct text provenance;
	bool *todo; /* [shard_count] */
	struct pipeline_range *ranges;
	uint64_t *shard_of_range;
	uint64_t todo_count;
	struct progress progress;
	struct finisher finisher;

	/* The shard that is being filled. */
	struct shard_writer *writer; /* NULL: it will not be published */
	struct text misses;
	struct moments moments;
	uint64_t *class_records;
};

/* ---- what is there already ---- */

static int survey(struct build *b)
{
	const struct job *job = b->job;
	uint64_t k, n = 0, part = job->part.count ? job->part.count : 1, there_inputs = 0, there_count = 0;
	int code = EXIT_DONE;

	job->account->input_count = 0;
	for (k = job->part.idx; code == EXIT_DONE && k < job->plan->shard_count; k += part) {
		struct receipt r = {0};
		bool there;

		code = interrupted() ? EXIT_INTERRUPTED : published_find(job, k, &r, &there);
		if (code != EXIT_DONE) {
			receipt_free(&r);
			break;
		}
		plan_shard(job->plan, k, &b->ranges[n].first, &b->ranges[n].count);
		job->account->input_count += b->ranges[n].count;
		if (there) {
			there_inputs += b->ranges[n].count;
			there_count++;
			code = receipt_account(&r, job->plan, job->account);
		} else {
			b->todo[k] = true;
			b->shard_of_range[n++] = k;
		}
		receipt_free(&r);
	}
	b->todo_count = n;
	if (code == EXIT_DONE && there_count)
		note("%s: %" PRIu64 " of %" PRIu64 " shards are there already%s", job->out_dir, there_count,
		     n + there_count, n ? "; continuing" : "");
	progress_start(&b->progress, "packing", "images", job->account->input_count);
	progress_resume(&b->progress, there_inputs, 0);
	return code;
}

/* ---- one shard ---- */

static int library_failure(const struct shard_error *err)
{
	return fail(exit_code_of_status(err->status), "%s", err->message);
}

static int begin_shard(struct build *b, uint64_t range_idx)
{
	struct shard_writer_options opt = {
		.size = sizeof(opt),
		.planned_records = b->ranges[range_idx].count,
		.plan_shard = b->shard_of_range[range_idx],
		.plan_digest = b->job->plan->digest,
		.provenance = b->provenance.data,
		.keys = 1,
	};
	char path[FILES_PATH_BYTES];
	struct shard_error err;
	int code = files_numbered(path, b->job->out_dir, "", b->shard_of_range[range_idx], ".shard");

	b->misses.bytes = 0;
	memset(&b->moments, 0, sizeof(b->moments));
	memset(b->class_records, 0, b->job->plan->class_count * sizeof(*b->class_records));
	if (code == EXIT_DONE && shard_writer_open(&b->writer, path, &b->job->schema, &opt, &err) != SHARD_OK)
		code = finisher_fail(&b->finisher, &err);
	return code;
}

/* This shard cannot be complete: give its room back at once, and go on looking at its inputs. */
static void hold_back(struct build *b)
{
	shard_writer_close(b->writer);
	b->writer = NULL;
}

static int end_shard(struct build *b, uint64_t range_idx)
{
	const struct plan *plan = b->job->plan;
	struct shard_writer *writer = b->writer;
	struct shard_error err;
	uint64_t i;

	if (!writer)
		return EXIT_DONE;
	for (i = 0; i < IMAGE_CHANNELS; i++) {
		struct shard_moments m = {.count = b->moments.count[i],
					  .sum = b->moments.sum[i],
					  .sum_squares_low = b->moments.sum_squares[i]};

		if (shard_writer_add_moments(writer, RECIPE_IMAGE, (uint32_t)i, &m, &err) != SHARD_OK)
			return library_failure(&err);
	}
	for (i = 0; i < plan->class_count; i++)
		if (shard_writer_add_class(writer, RECIPE_LABEL, (uint32_t)i, (uint32_t)plan->class_count,
					   b->class_records[i], &err) != SHARD_OK)
			return library_failure(&err);
	b->writer = NULL;
	return finisher_put(&b->finisher, writer, b->shard_of_range[range_idx], &b->misses);
}

static int take_record(struct build *b, const struct result *r)
{
	int64_t label = r->input.class_idx;
	const void *group[] = {r->record, &label};
	struct shard_error err;

	if (!b->writer)
		return EXIT_DONE;
	if (shard_writer_append(b->writer, group, r->input.path, r->input.path_bytes, &err) != SHARD_OK)
		return finisher_fail(&b->finisher, &err);
	moments_merge(&b->moments, &r->moments);
	b->class_records[r->input.class_idx]++;
	return EXIT_DONE;
}

static int take_bad(struct build *b, const struct result *r)
{
	const struct job *job = b->job;
	uint32_t policy = job->plan->recipe.on_error;
	struct shard_miss miss = {.ordinal = r->ordinal,
				  .reason = r->reason,
				  .how = policy == ON_ERROR_QUARANTINE ? SHARD_QUARANTINED : SHARD_SKIPPED};
	enum problem_how how = policy == ON_ERROR_FAIL ? PROBLEM_BAD : (enum problem_how)miss.how;
	struct shard_error err;
	int code = account_problem(job->account, r->ordinal, r->reason, how, r->message);

	if (code != EXIT_DONE)
		return code;
	account_show(job->account, job->source, r->input.path, r->message);
	if (how == PROBLEM_BAD) {
		hold_back(b);
	} else if (b->writer) {
		receipt_add_miss(&b->misses, &miss, r->message);
		if (shard_writer_miss(b->writer, &miss, &err) != SHARD_OK)
			return finisher_fail(&b->finisher, &err);
	}
	if (account_exceeds(job->account, job->max_bad))
		return fail(EXIT_BAD,
			    "%" PRIu64 " bad inputs are more than --max-bad allows; stopped at input %" PRIu64
			    " of %" PRIu64,
			    job->account->bad, r->ordinal + 1, job->plan->input_count);
	return EXIT_DONE;
}

static int take_result(struct build *b, const struct result *r)
{
	struct account *a = b->job->account;
	int code;

	switch (r->outcome) {
	case OUTCOME_RECORD:
		return take_record(b, r);
	case OUTCOME_BAD:
		return take_bad(b, r);
	case OUTCOME_FAILED:
		code = account_problem(a, r->ordinal, 0, PROBLEM_UNREADABLE, r->message);
		account_show(a, b->job->source, r->input.path, r->message);
		hold_back(b);
		return code;
	case OUTCOME_STOP:
		break;
	}
	return fail(EXIT_IO, "%s/%s: %s", b->job->source, r->input.path, r->message);
}

/* ---- all of them ---- */

static int fill_shard(struct build *b, struct pipeline *p, uint64_t range_idx)
{
	uint64_t i;
	int code = begin_shard(b, range_idx);

	for (i = 0; code == EXIT_DONE && i < b->ranges[range_idx].count; i++) {
		struct result *r;

		code = pipeline_next(p, &r);
		if (code != EXIT_DONE)
			break;
		code = take_result(b, r);
		pipeline_release(p);
		if (code == EXIT_DONE)
			code = finisher_check(&b->finisher);
	}
	if (code == EXIT_DONE)
		code = end_shard(b, range_idx);
	hold_back(b); /* nothing, unless it went wrong */
	return code;
}

static int fill_all(struct build *b)
{
	struct pipeline_options opt = {
		.plan = b->job->plan,
		.source_fd = b->job->source_fd,
		.quarantine = b->job->quarantine,
		.ranges = b->ranges,
		.range_count = b->todo_count,
		.worker_count = b->job->worker_count,
		.progress = &b->progress,
	};
	struct pipeline *p = NULL;
	uint64_t i;
	/* The finisher comes first: where threads are few, workers may be fewer, but without it nothing goes. */
	int code = finisher_start(&b->finisher, b->job->state_dir, b->job->quarantine != NULL, b->job->account), finished;

	if (code != EXIT_DONE)
		return code;
	code = pipeline_open(&p, &opt);
	if (code == EXIT_DONE)
		for (i = 0; code == EXIT_DONE && i < b->todo_count; i++)
			code = fill_shard(b, p, i);
	finished = finisher_stop(&b->finisher);
	pipeline_close(p);
	return code == EXIT_DONE ? finished : code;
}

static bool allocate(struct build *b)
{
	const struct plan *plan = b->job->plan;

	recipe_provenance(&plan->recipe, plan->digest, &b->provenance);
	b->todo = calloc(plan->shard_count + 1, sizeof(*b->todo));
	b->ranges = calloc(plan->shard_count + 1, sizeof(*b->ranges));
	b->shard_of_range = calloc(plan->shard_count + 1, sizeof(*b->shard_of_range));
	b->class_records = calloc(plan->class_count + 1, sizeof(*b->class_records));
	return b->todo && b->ranges && b->shard_of_range && b->class_records && !text_failed(&b->provenance);
}

/* The run itself went well; did the inputs? */
static int judge(const struct account *a, uint32_t policy)
{
	if (a->unreadable)
		return fail(EXIT_IO, "%" PRIu64 " inputs could not be read; shards with one of them were not published",
			    a->unreadable);
	if (a->bad && policy == ON_ERROR_FAIL)
		return fail(EXIT_BAD, "%" PRIu64 " bad inputs; shards with one of them were not published", a->bad);
	return EXIT_DONE;
}

int build_run(const struct job *job)
{
	struct build b = {.job = job};
	struct shard_error err;
	int code = EXIT_DONE;

	if (!allocate(&b))
		code = fail(EXIT_IO, "out of memory for %" PRIu64 " shards", job->plan->shard_count);
	if (code == EXIT_DONE &&
	    (shard_remove_temps(job->out_dir, NULL, &err) != SHARD_OK ||
	     (shard_remove_temps(job->state_dir, NULL, &err) != SHARD_OK && err.os_code != ENOENT)))
		code = library_failure(&err);
	if (code == EXIT_DONE)
		code = survey(&b);
	if (code == EXIT_DONE && b.todo_count) {
		code = space_check(job, space_needed(job, b.todo));
		if (code == EXIT_DONE)
			code = fill_all(&b);
	}
	if (code == EXIT_DONE && b.todo_count)
		progress_finish(&b.progress);
	else
		progress_abandon(&b.progress);
	if (code == EXIT_DONE)
		code = judge(job->account, job->plan->recipe.on_error);
	text_free(&b.provenance);
	text_free(&b.misses);
	free(b.todo);
	free(b.ranges);
	free(b.shard_of_range);
	free(b.class_records);
	return code;
}
