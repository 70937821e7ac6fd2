/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filling.c - the shards that a build makes, filled one after the other
 *
 * One thread, this one, takes results in order and fills the writers.  Bad inputs do not stop it
 * when they only spoil their own shard: the run goes on, and the user sees all of them at once.
 */
#include "tools/shardpack/make/make.h"

#include "libshard/base/turns.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/common/workers.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/make/job.h"

#define CLAIM_AHEAD 3 /* shards whose inputs workers may begin: the one being filled, and the next ones */

/* What is different between images and fixed records. */
struct kind {
	/* all that the workers need; close it all the same */
	int (*open)(struct build *b, uint64_t range_count, struct workers_options *w);
	/* what is in a slot; *done counts its inputs */
	int (*take)(struct build *b, uint64_t slot, uint64_t *done);
	void (*close)(struct build *b);
	/* of a shard with so many inputs */
	uint64_t (*ticket_count)(const struct build *b, uint64_t inputs);
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
	int code = files_numbered(path, b->job->out_dir, "", b->shard_of_range[range_idx], ".shard");

	if (b->claims)
		opt.temp_id = claims_temp_id(b->claims, b->shard_of_range[range_idx]);
	if (code == EXIT_DONE && shard_writer_open(out, path, &b->job->schema, &opt, &err) != SHARD_OK)
		code = finisher_fail(&b->finisher, &err);
	return code;
}

static int begin_shard(struct build *b, uint64_t range_idx)
{
	b->receipt = (struct receipt){.lines = b->receipt.lines};
	b->receipt.lines.bytes = 0;
	shard_tally_move(NULL, b->tally);
	b->writer = b->next_writer;
	b->next_writer = NULL;
	return b->writer || b->job->look_only ? EXIT_DONE : open_writer(b, range_idx, &b->writer);
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
	int code = EXIT_DONE, put;

	/* What could not be read may be readable elsewhere. */
	if (!writer && b->claims && !b->job->account->unreadable)
		claims_failed(b->claims, b->shard_of_range[range_idx]);
	if (!writer)
		return EXIT_DONE;
	code = b->job->stored ? stored_check_unchanged(b->job->stored, b->job->anew) : EXIT_DONE;
	if (code != EXIT_DONE)
		return code;
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
		code = open_writer(b, range_idx + 1, &b->next_writer);
	put = finisher_put(&b->finisher, writer, b->shard_of_range[range_idx], &b->receipt);
	return code == EXIT_DONE ? put : code;
}

static int take_record(struct build *b, const struct result *r)
{
	const void *group[] = {r->record, r->meta};
	struct shard_error err;
	int code = exif_decision_check(b->job, r);

	if (code != EXIT_DONE)
		return code;
	if (receipt_tell(&b->receipt.lines, b->job->account, b->job->source, r) != EXIT_DONE)
		return EXIT_IO;
	if (!b->writer)
		return EXIT_DONE;
	if (shard_writer_append(b->writer, group, r->path, r->path_bytes, &err) != SHARD_OK)
		return finisher_fail(&b->finisher, &err);
	fit_count_add(&b->receipt.fit, &r->fit);
	shard_tally_move(b->tally, r->tally);
	return EXIT_DONE;
}

static int take_bad(struct build *b, uint64_t ordinal, const char *path, uint32_t reason, const char *message)
{
	const struct job *job = b->job;
	enum problem_how how = account_how(job->plan->recipe.on_error, reason);
	struct shard_miss miss = {.ordinal = ordinal, .reason = reason, .how = (uint32_t)how};
	struct shard_error err;
	int code = account_problem(job->account, ordinal, reason, how, message);

	if (code != EXIT_DONE)
		return code;
	account_show(job->account, job->source, path, message);
	if (how == PROBLEM_BAD) {
		hold_back(b);
	} else if (b->writer) {
		receipt_add_miss(&b->receipt.lines, &miss, message);
		if (shard_writer_miss(b->writer, &miss, &err) != SHARD_OK)
			return finisher_fail(&b->finisher, &err);
	}
	return account_check_bad(job->account, job->max_bad, ordinal, job->plan->input_count);
}

static int take_result(struct build *b, const struct result *r)
{
	struct account *a = b->job->account;
	int code;

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
		a->changed += r->verdict.outcome == OUTCOME_CHANGED;
		code = account_problem(a, r->ordinal, 0, PROBLEM_UNREADABLE, r->verdict.message);
		account_show(a, b->job->source, r->path, r->verdict.message);
		hold_back(b);
		return code;
	case OUTCOME_OTHER:
		return fail(EXIT_MISMATCH, "%s/%s: %s", b->job->source, r->path, r->verdict.message);
	case OUTCOME_STOP:
		break;
	}
	return interrupted() ? EXIT_INTERRUPTED
			     : fail(EXIT_IO, "%s/%s: %s", b->job->source, r->path, r->verdict.message);
}

/* All of a shard, out of the workers' slots. */
static int fill_shard(struct build *b, const struct kind *kind, uint64_t range_idx)
{
	uint64_t done = 0, inputs = b->ranges[range_idx].count, slot;
	int code = begin_shard(b, range_idx);

	while (code == EXIT_DONE && done < inputs) {
		code = workers_next(b->workers, &slot);
		turns_take(b->turns);
		for (unsigned n = 0; code == EXIT_DONE && slot != WORKERS_NO_SLOT; n++) {
			code = kind->take(b, slot, &done);
			workers_release(b->workers);
			slot = n < WORKERS_AT_ONCE && done < inputs ? workers_next_now(b->workers) : WORKERS_NO_SLOT;
		}
		turns_give(b->turns);
		if (code == EXIT_DONE)
			code = finisher_check(&b->finisher);
	}
	if (code == EXIT_DONE)
		code = end_shard(b, range_idx);
	shard_writer_close(b->writer); /* none, unless it went wrong */
	b->writer = NULL;
	return code;
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

static int take_fixed(struct build *b, const struct fixed_block *block, uint64_t i)
{
	const void *group[SHARD_GROUPS_MAX];
	struct shard_error err;

	if (block->bad[i])
		return take_fixed_bad(b, block, i);
	if (!b->writer)
		return EXIT_DONE;
	fixed_record(block, &b->job->schema, i, group);
	return shard_writer_append(b->writer, group, NULL, 0, &err) == SHARD_OK ? EXIT_DONE
										: finisher_fail(&b->finisher, &err);
}

/* The records of a block belong to one shard. */
static int take_block(struct build *b, uint64_t slot, uint64_t *done)
{
	struct fixed_block *block = record_workers_block(b->records, slot);
	int code = EXIT_DONE;

	if (block->verdict.outcome != OUTCOME_RECORD)
		code = fail(EXIT_IO, "%s/%s", b->job->source, block->verdict.message);
	for (uint64_t i = 0; code == EXIT_DONE && i < block->place.count; i++)
		code = take_fixed(b, block, i);
	shard_tally_move(b->tally, block->tally);
	*done += block->place.count;
	return code;
}

static uint64_t block_count(const struct build *b, uint64_t inputs)
{
	return (inputs + fixed_block_records(&b->job->schema) - 1) / fixed_block_records(&b->job->schema);
}

static int open_records(struct build *b, uint64_t range_count, struct workers_options *w)
{
	const struct job *job = b->job;

	b->warm = warm_start(job->plan, job->stored);
	b->fixed = fixed_open(job->plan, &job->schema, job->stored);
	if (!b->fixed)
		return fail(EXIT_IO, "out of memory for blocks of records");
	return record_workers_open(&b->records, job, b->ranges, range_count, w);
}

static void close_records(struct build *b)
{
	record_workers_close(b->records);
	fixed_close(b->fixed);
	warm_stop(b->warm);
}

/* ---- images ---- */

static int take_image(struct build *b, uint64_t slot, uint64_t *done)
{
	++*done;
	return take_result(b, image_workers_result(b->images, slot));
}

static uint64_t image_count(const struct build *b, uint64_t inputs)
{
	(void)b;
	return inputs;
}

static int open_images(struct build *b, uint64_t range_count, struct workers_options *w)
{
	return image_workers_open(&b->images, b->job, b->ranges, range_count, w);
}

static void close_images(struct build *b)
{
	image_workers_close(b->images);
}

/* ---- all of them ---- */

static const struct kind of_images = {open_images, take_image, close_images, image_count};
static const struct kind of_records = {open_records, take_block, close_records, block_count};

/*
 * Claim shards, so that workers have something to do while this one is filled.  A process that
 * cannot read its inputs takes no more: that is its own fault, and others may be able to.
 */
static int claim_more(struct build *b, const struct kind *kind, uint64_t range_idx)
{
	struct account *a = b->job->account;
	uint64_t shard_idx;
	bool got = b->claims != NULL;
	int code = EXIT_DONE;

	while (got && !a->unreadable && !asked_to_stop() && b->todo_count < range_idx + CLAIM_AHEAD) {
		struct range *r = &b->ranges[b->todo_count];

		code = claims_next(b->claims, &shard_idx, &got);
		if (code != EXIT_DONE || !got)
			break;
		plan_shard(b->job->plan, shard_idx, &r->first, &r->count);
		b->shard_of_range[b->todo_count++] = shard_idx;
		a->input_count += r->count;
		workers_allow(b->workers, kind->ticket_count(b, r->count));
	}
	return code;
}

int filling_run(struct build *b, uint64_t range_count)
{
	const struct kind *kind = plan_names_inputs(b->job->plan) ? &of_images : &of_records;
	struct workers_options w = {.worker_count = b->job->worker_count,
				    .turns = b->turns,
				    .progress = &b->progress,
				    .on_demand = b->claims != NULL};
	int code = kind->open(b, range_count, &w);

	if (code == EXIT_DONE)
		code = workers_open(&b->workers, &w);
	for (uint64_t i = 0; code == EXIT_DONE; i++) {
		code = claim_more(b, kind, i);
		if (code != EXIT_DONE || i == b->todo_count)
			break;
		code = asked_to_stop() ? EXIT_STOPPED : fill_shard(b, kind, i);
	}
	workers_close(b->workers);
	kind->close(b);
	b->workers = NULL;
	b->images = NULL;
	b->records = NULL;
	b->fixed = NULL;
	b->warm = NULL;
	return code;
}
