/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - make the shards of a plan that are not there yet
 *
 * Either all that are missing, of this process's part; or the ones that it claims, one after the
 * other, until none is missing.
 *
 * One thread, this one, takes results in order and fills the writers.  Bad inputs do not stop it
 * when they only spoil their own shard: the run goes on, and the user sees all of them at once.
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "libshard/base/turns.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/common/workers.h"
#include "tools/shardpack/input/input.h"

#define CLAIM_AHEAD 3 /* shards whose inputs workers may begin: the one being filled, and the next ones */

struct build {
	const struct job *job;
	struct text provenance;
	bool *todo; /* [shard_count] which of them need room */
	struct range *ranges;
	uint64_t *shard_of_range;
	uint64_t todo_count, again_count;
	struct progress progress;
	struct finisher finisher;
	struct workers *workers;
	struct shard_turns *turns; /* one for each worker; the other threads that compute take them, too */

	struct claims *claims; /* where the next shards come from; NULL: all are known */
	bool is_complete;      /* with claims: no shard is missing */

	struct image_workers *images;	/* NULL: its records have a fixed size */
	struct record_workers *records; /* or NULL */
	struct fixed *fixed;		/* for what is wrong with a record */
	struct warm *warm;

	/* The shard that is being filled. */
	struct shard_writer *writer;	  /* NULL: it will not be published */
	struct shard_writer *next_writer; /* of the one behind it, opened early; or NULL */
	struct receipt receipt;		  /* its lines, and what they count */
	struct shard_tally *tally;
};

/* ---- one shard ---- */

static int open_writer(struct build *b, uint64_t range_idx, struct shard_writer **out)
{
	struct shard_writer_options opt = {
		.size = sizeof(opt),
		.planned_records = b->ranges[range_idx].count,
		.plan_shard = b->shard_of_range[range_idx],
		.plan_digest = b->job->plan->digest,
		.provenance = b->provenance.data,
		.keys = plan_names_inputs(b->job->plan),
		.skip_read_back = !b->job->read_back,
		.class_count = b->job->plan->class_count,
		.turns = b->turns,
	};
	char path[FILES_PATH_BYTES];
	struct shard_error err;
	int rc = files_numbered(path, b->job->out_dir, "", b->shard_of_range[range_idx], ".shard");

	if (b->claims)
		opt.temp_id = claims_temp_id(b->claims, b->shard_of_range[range_idx]);
	if (!rc && shard_writer_open(out, path, &b->job->schema, &opt, &err) != SHARD_OK)
		rc = finisher_fail(&b->finisher, &err);
	return rc;
}

/* In a turn.  The shard cannot be complete: give its room back, and go on looking at its inputs. */
static void hold_back(struct build *b)
{
	turns_give(b->turns); /* the writer's thread, which has to end, may wait for one */
	shard_writer_close(b->writer);
	b->writer = NULL;
	turns_take(b->turns);
}

static int end_shard(struct build *b, uint64_t range_idx)
{
	struct shard_writer *writer = b->writer;
	struct shard_error err;
	int rc = EXIT_DONE, put;

	/* What could not be read may be readable elsewhere. */
	if (!writer && b->claims && !b->job->account->unreadable)
		claims_failed(b->claims, b->shard_of_range[range_idx]);
	if (!writer)
		return EXIT_DONE;
	rc = b->job->source_files ? source_files_check_unchanged(b->job->source_files, b->job->remedy) : EXIT_DONE;
	if (rc)
		return rc;
	if (shard_tally_write(b->tally, writer, &err) != SHARD_OK)
		return fail_of_library(&err);
	for (uint32_t f = 0; f < b->job->schema.field_count; f++)
		shard_tally_not_finite(b->tally, f, &b->receipt.not_finite.nan[f], &b->receipt.not_finite.infinite[f]);
	b->writer = NULL;
	/*
	 * Open the next one first: to reserve its room would have to wait for the fsync of this
	 * one.
	 */
	if (range_idx + 1 < b->todo_count)
		rc = open_writer(b, range_idx + 1, &b->next_writer);
	put = finisher_put(&b->finisher, writer, b->shard_of_range[range_idx], &b->receipt);
	return rc ? rc : put;
}

/* A record of which there is something to tell: into the account, and into the receipt of the shard. */
static void enter(struct build *b, const struct problem *p)
{
	receipt_add(&b->receipt.lines, p);
	account_add(b->job->account, p);
}

static int take_record(struct build *b, const struct result *r)
{
	const struct verdict *v = &r->verdict;
	const struct problem damage = {r->ordinal, v->reason, PROBLEM_ACCEPTED, v->message};
	const struct problem first = {r->ordinal, SHARD_MISS_UNSUPPORTED, PROBLEM_FIRST, v->first};
	const void *group[] = {r->record, r->meta};
	struct shard_error err;
	int rc = exif_decision_check(b->job, r);

	/* Of most records there is nothing to tell. */
	if (!rc && v->reason) {
		account_show(b->job, r->path, &damage);
		enter(b, &damage);
	}
	if (!rc && v->first[0])
		enter(b, &first);
	if (rc || !b->writer)
		return rc;
	if (shard_writer_append(b->writer, group, r->path, r->path_bytes, &err) != SHARD_OK)
		return finisher_fail(&b->finisher, &err);
	fit_count_add(&b->receipt.fit, &r->fit);
	shard_tally_move(b->tally, r->tally);
	return EXIT_DONE;
}

static int take_bad(struct build *b, uint64_t ordinal, const char *path, uint32_t reason, const char *message)
{
	const struct job *job = b->job;
	const struct problem p = {ordinal, reason, account_how(job->plan->recipe.on_error, reason), message};
	struct shard_miss miss = {.ordinal = ordinal, .reason = reason, .how = (uint32_t)p.how};
	struct shard_error err;

	account_add(job->account, &p);
	account_show(job, path, &p);
	if (p.how == PROBLEM_BAD) {
		hold_back(b);
	} else if (b->writer) {
		receipt_add(&b->receipt.lines, &p);
		if (shard_writer_miss(b->writer, &miss, &err) != SHARD_OK)
			return finisher_fail(&b->finisher, &err);
	}
	return account_check_bad(job->account, job->max_bad, ordinal, job->plan->input_count);
}

static int take_result(struct build *b, const struct result *r)
{
	const struct problem unreadable = {r->ordinal, 0, PROBLEM_UNREADABLE, r->verdict.message};
	struct account *a = b->job->account;

	switch (r->verdict.outcome) {
	case OUTCOME_RECORD:
		return take_record(b, r);
	case OUTCOME_BAD:
		if (b->job->look_only && r->input.bad_reason) /* entered before */
			return EXIT_DONE;
		return take_bad(b, r->ordinal, r->path, r->verdict.reason, r->verdict.message);
	case OUTCOME_VANISHED:
		if (b->job->leave_vanished)
			return take_bad(b, r->ordinal, r->path, SHARD_MISS_VANISHED, r->verdict.message);
		a->gone++;
		/* fall through */
	case OUTCOME_FAILED:
	case OUTCOME_CHANGED:
		/* It says nothing of the data, so the shard is left to another run. */
		a->changed += r->verdict.outcome == OUTCOME_CHANGED;
		account_add(a, &unreadable);
		account_show(b->job, r->path, &unreadable);
		hold_back(b);
		return EXIT_DONE;
	case OUTCOME_OTHER:
		return fail(EXIT_MISMATCH, "%s/%s: %s", b->job->source, r->path, r->verdict.message);
	case OUTCOME_STOP:
		break;
	}
	return interrupted() ? EXIT_INTERRUPTED
			     : fail(EXIT_IO, "%s/%s: %s", b->job->source, r->path, r->verdict.message);
}

/* ---- fixed records ---- */

static int take_fixed_bad(struct build *b, const struct fixed_block *block, uint64_t i)
{
	const struct job *job = b->job;
	struct plan_input input;
	struct verdict v;
	char path[PLAN_PATH_BYTES_MAX];

	fixed_explain(b->fixed, block, i, &v);
	plan_input(job->plan, block->input_idx[i], &input);
	plan_input_path(job->plan, &input, path);
	if (job->quarantine && !fixed_keep(b->fixed, block, i, job->quarantine, path, &v))
		return fail(EXIT_IO, "%s/%s: %s", job->source, path, v.message);
	return take_bad(b, block->place.first + i, path, v.reason, v.message);
}

/* The records of a block belong to one shard. */
static int take_block(struct build *b, const struct fixed_block *block)
{
	const void *group[SHARD_GROUPS_MAX];
	struct shard_error err;
	int rc = EXIT_DONE;

	if (block->verdict.outcome != OUTCOME_RECORD)
		rc = fail(EXIT_IO, "%s/%s", b->job->source, block->verdict.message);
	for (uint64_t i = 0; !rc && i < block->place.count; i++) {
		if (block->bad[i]) {
			rc = take_fixed_bad(b, block, i);
		} else if (b->writer) {
			fixed_record(block, &b->job->schema, i, group);
			if (shard_writer_append(b->writer, group, NULL, 0, &err) != SHARD_OK)
				rc = finisher_fail(&b->finisher, &err);
		}
	}
	shard_tally_move(b->tally, block->tally);
	return rc;
}

/* ---- all of them ---- */

/* All of a shard, out of the workers' slots. */
static int fill_shard(struct build *b, uint64_t range_idx)
{
	uint64_t done = 0, inputs = b->ranges[range_idx].count, slot;
	int rc = EXIT_DONE;

	b->receipt = (struct receipt){.lines = b->receipt.lines};
	b->receipt.lines.bytes = 0;
	shard_tally_move(NULL, b->tally);
	b->writer = b->next_writer;
	b->next_writer = NULL;
	if (!b->writer && !b->job->look_only)
		rc = open_writer(b, range_idx, &b->writer);
	while (!rc && done < inputs) {
		rc = workers_next(b->workers, &slot);
		turns_take(b->turns);
		for (unsigned n = 0; !rc && slot != WORKERS_NO_SLOT; n++) {
			if (b->images) {
				rc = take_result(b, image_workers_result(b->images, slot));
				done++;
			} else {
				const struct fixed_block *block = record_workers_block(b->records, slot);

				rc = take_block(b, block);
				done += block->place.count;
			}
			workers_release(b->workers);
			slot = n < WORKERS_AT_ONCE && done < inputs ? workers_next_now(b->workers) : WORKERS_NO_SLOT;
		}
		turns_give(b->turns);
		if (!rc)
			rc = finisher_check(&b->finisher);
	}
	if (!rc)
		rc = end_shard(b, range_idx);
	shard_writer_close(b->writer); /* none, unless it went wrong */
	b->writer = NULL;
	return rc;
}

/*
 * Claim shards, so that workers have something to do while this one is filled.  A process that
 * cannot read its inputs takes no more: that is its own fault, and others may be able to.
 */
static int claim_ahead(struct build *b, uint64_t range_idx)
{
	struct account *a = b->job->account;
	uint64_t shard_idx, at_once = b->images ? 1 : fixed_block_records(&b->job->schema);
	bool got = b->claims != NULL;
	int rc = EXIT_DONE;

	while (got && !a->unreadable && !asked_to_stop() && b->todo_count < range_idx + CLAIM_AHEAD) {
		struct range *r = &b->ranges[b->todo_count];

		rc = claims_next(b->claims, &shard_idx, &got);
		if (rc || !got)
			break;
		plan_shard(b->job->plan, shard_idx, &r->first, &r->count);
		b->shard_of_range[b->todo_count++] = shard_idx;
		a->input_count += r->count;
		workers_allow(b->workers, (r->count + at_once - 1) / at_once);
	}
	return rc;
}

/*
 * Fill the shards of b->shard_of_range, and complete them.  With claims there are none at first: they
 * are added as they are claimed, until none can be.  Then b->ranges has all `range_count` that may come.
 */
static int fill_all(struct build *b, uint64_t range_count)
{
	const struct job *job = b->job;
	struct workers_options w = {.worker_count = job->worker_count,
				    .turns = b->turns,
				    .progress = &b->progress,
				    .on_demand = b->claims != NULL};
	/* The finisher comes first: with few threads workers can be fewer, but not the finisher. */
	int rc = finisher_start(&b->finisher, job, b->turns, b->claims), finished;

	if (rc)
		return rc;
	if (plan_names_inputs(job->plan)) {
		rc = image_workers_open(&b->images, job, b->ranges, range_count, &w);
	} else {
		b->warm = warm_start(job->plan, job->source_files);
		b->fixed = fixed_open(job->plan, &job->schema, job->source_files);
		rc = record_workers_open(&b->records, job, b->ranges, range_count, &w);
	}
	if (!rc)
		rc = workers_open(&b->workers, &w);
	for (uint64_t i = 0; !rc; i++) {
		rc = claim_ahead(b, i);
		if (rc || i == b->todo_count)
			break;
		rc = asked_to_stop() ? EXIT_STOPPED : fill_shard(b, i);
	}
	workers_close(b->workers);
	image_workers_close(b->images);
	record_workers_close(b->records);
	fixed_close(b->fixed);
	warm_stop(b->warm);
	shard_writer_close(b->next_writer); /* NULL, unless it went wrong */
	b->workers = NULL;
	b->images = NULL;
	b->records = NULL;
	b->fixed = NULL;
	b->warm = NULL;
	b->next_writer = NULL;
	finished = finisher_stop(&b->finisher);
	/* To run again, as EXIT_STOPPED asks for, would not mend what went wrong here. */
	return finished && (!rc || rc == EXIT_STOPPED) ? finished : rc;
}

/* All that is not there yet, of this process's part. */
static int build_part(struct build *b)
{
	const struct job *job = b->job;
	uint64_t n = 0, part = job->part.count ? job->part.count : 1, there_inputs = 0, there_count = 0, again = 0;
	int rc = EXIT_DONE;

	job->account->input_count = 0;
	for (uint64_t k = job->part.idx; !rc && k < job->plan->shard_count; k += part) {
		struct receipt r = {0};
		bool there;

		rc = interrupted() ? EXIT_INTERRUPTED : published_find(job, k, &job->receipts->before, &r, &there);
		if (rc) {
			receipt_free(&r);
			break;
		}
		plan_shard(job->plan, k, &b->ranges[n].first, &b->ranges[n].count);
		job->account->input_count += b->ranges[n].count;
		if (there && !job->again) {
			there_inputs += b->ranges[n].count;
			there_count++;
			rc = receipt_account(&r, job->plan, job->account);
		} else {
			/* One that is there needs room until it was compared. */
			b->todo[k] = !there || again++ < FINISHER_SHARDS + 2;
			b->shard_of_range[n++] = k;
		}
		receipt_free(&r);
	}
	b->todo_count = n;
	b->again_count = again;
	if (!rc && again)
		note("%s: building %" PRIu64 " of %" PRIu64 " shard%s again, to compare them", job->out_dir, again, n,
		     n == 1 ? "" : "s");
	if (!rc && there_count)
		note("%s: %" PRIu64 " of %" PRIu64 " shard%s %s there already%s", job->out_dir, there_count,
		     n + there_count, n + there_count == 1 ? "" : "s", there_count == 1 ? "is" : "are",
		     n ? "; continuing" : "");
	progress_start(&b->progress, "packing", plan_names_inputs(job->plan) ? "images" : "records",
		       job->account->input_count);
	progress_resume(&b->progress, there_inputs, 0);
	if (!rc && n && !job->look_only)
		rc = space_check(job, space_needed(job, b->todo));
	return rc || !n ? rc : fill_all(b, n);
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
	int rc = claims_open(&b->claims, job), told;

	if (!rc)
		rc = claims_mark_open(b->claims, b->todo);
	if (!rc)
		rc = space_check(job, space_needed(job, b->todo));
	if (!rc) {
		most = all_missing(b);
		for (uint64_t i = 0; i < most; i++)
			inputs += b->ranges[i].count;
		progress_start(&b->progress, "packing", plan_names_inputs(job->plan) ? "images" : "records", inputs);
		rc = claims_wait(b->claims, &more);
	}
	while (!rc && more) {
		rc = fill_all(b, all_missing(b));
		more = false;
		if (!rc && !job->account->unreadable)
			rc = claims_wait(b->claims, &more);
	}
	if (!rc) {
		told = claims_tell(b->claims, &b->is_complete);
		rc = account_failed(job->account) ? rc : told;
	}
	claims_close(b->claims);
	return rc;
}

int build_run(const struct job *job)
{
	const struct plan *plan = job->plan;
	struct build b = {.job = job};
	struct shard_error err;
	int rc = EXIT_DONE;

	recipe_provenance(&plan->recipe, plan->digest, &b.provenance);
	b.todo = xcalloc(plan->shard_count, sizeof(*b.todo));
	b.ranges = xcalloc(plan->shard_count, sizeof(*b.ranges));
	b.shard_of_range = xcalloc(plan->shard_count, sizeof(*b.shard_of_range));
	b.turns = turns_open(job->worker_count);
	if (!b.turns)
		rc = fail(EXIT_IO, "out of memory for %u workers", job->worker_count);
	if (!rc && shard_tally_open(&b.tally, &job->schema, &err) != SHARD_OK)
		rc = fail_of_library(&err);
	/*
	 * Remove what killed processes left behind.  Other machines may not see our locks, so with claims
	 * this is left to sealing.
	 */
	if (!rc && !job->look_only && !job->worker &&
	    (shard_remove_temps(job->out_dir, NULL, &err) != SHARD_OK ||
	     (shard_remove_temps(job->state_dir, NULL, &err) != SHARD_OK && err.os_code != ENOENT)))
		rc = fail_of_library(&err);
	if (!rc && !job->look_only)
		rc = receipt_files_read(job->receipts, job->state_dir);
	if (!rc)
		rc = job->worker ? build_claimed(&b) : build_part(&b);
	/*
	 * If the dataset was sealed while we slept, that process could not remove files that we had open;
	 * else sealing removes what is left, once for all workers.
	 */
	if (!rc && b.is_complete && output_is_sealed(job->out_dir, plan))
		rc = output_clear_state(job);
	if (!rc && (b.todo_count || (job->worker && b.progress.count)))
		progress_finish(&b.progress);
	else
		progress_abandon(&b.progress);
	/* Inputs that could not be read are told even of a run that was asked to stop. */
	if (!rc || rc == EXIT_STOPPED) {
		int judged = account_judge(job->account, !rc && plan->recipe.on_error == ON_ERROR_FAIL, job->remedy);

		rc = judged ? judged : rc;
	}
	if (!rc && b.again_count)
		note("%s: %" PRIu64 " shards have the bytes that these sources make", job->out_dir, b.again_count);
	text_free(&b.provenance);
	receipt_free(&b.receipt);
	free(b.todo);
	free(b.ranges);
	free(b.shard_of_range);
	shard_tally_close(b.tally);
	turns_close(b.turns);
	return rc;
}
