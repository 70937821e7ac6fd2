/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal_dataset.c - shards become a dataset
 *
 * The order of steps is what makes a kill harmless: everything that is made from .shardpack
 * is written before it goes, and it goes after the manifest.
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/turns.h"
#include "shard.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/common/workers.h"

#define MISSING_BYTES_MAX 200

/* Every class name, decoded; they and the array are to be freed. */
static char **class_names(const struct plan *plan)
{
	char **names = xcalloc(plan->class_count, sizeof(*names)), name[SHARD_KEY_BYTES_MAX + 1];

	for (uint64_t i = 0; i < plan->class_count; i++) {
		plan_class_name(plan, i, name);
		names[i] = xstrdup(name);
	}
	return names;
}

/* Shards are missing: which, and what makes them. */
static int refuse_missing(const struct job *job, const struct shard_list *l)
{
	uint64_t count = l->shard_count - l->there_count;
	struct text list = {0}, words = {0};
	int rc;

	shard_list_missing(l, MISSING_BYTES_MAX, &list);
	text_shell_word(&words, job->out_dir);
	rc = fail(EXIT_MISMATCH,
		  "%s: %" PRIu64 " of %" PRIu64 " shard%s %s not there yet: %s; `shardpack build %s` makes %s%s",
		  job->out_dir, count, l->shard_count, l->shard_count == 1 ? "" : "s", count == 1 ? "is" : "are",
		  list.data, words.data, count == 1 ? "it" : "them",
		  list.bytes > MISSING_BYTES_MAX ? ", and `shardpack status --retry-list` lists them all" : "");
	text_free(&list);
	text_free(&words);
	return rc;
}

/* ---- all shards --------------------------------------------------------------------------- */

/*
 * To open a shard takes far longer than to enter it.  So threads do that
 * ahead, many shards at a time.  What one of them finds not to be in order is left to the main
 * thread, which looks again when its turn comes, and says what it is.
 */
#define LOOK_SHARDS	 64
#define LOOK_AHEAD	 2  /* times the threads */
#define LOOK_THREADS_MAX 16 /* the pages and statistics of each shard that is looked at are kept */

struct look {
	struct shard_reader *pages; /* NULL: not in order, or nobody looked yet */
	struct receipt receipt;
};

struct look_ahead {
	const struct job *job;
	uint64_t next; /* the first shard that no slot has */
	struct slot {
		uint64_t first, count;
		struct look look[LOOK_SHARDS];
	} * slot;
	struct progress progress;
	struct workers *workers;
	struct shard_turns *turns;
};

static void *begin_looking(void *context)
{
	return context;
}

static void end_looking(void *own)
{
	(void)own;
}

static void assign_shards(void *context, uint64_t slot)
{
	struct look_ahead *a = context;
	uint64_t left = a->job->plan->shard_count - a->next;

	a->slot[slot].first = a->next;
	a->slot[slot].count = left < LOOK_SHARDS ? left : LOOK_SHARDS;
	a->next += a->slot[slot].count;
}

static void look_at_shards(void *context, void *own, uint64_t slot)
{
	struct look_ahead *a = context;
	struct slot *s = &a->slot[slot];

	(void)own;
	for (uint64_t i = 0; i < s->count; i++)
		published_peek(a->job, s->first + i, &s->look[i].receipt, &s->look[i].pages);
}

static void forget(struct look *l)
{
	shard_reader_close(l->pages);
	l->pages = NULL;
	receipt_free(&l->receipt);
}

static void forget_shards(void *context, uint64_t slot)
{
	struct slot *s = &((struct look_ahead *)context)->slot[slot];

	for (uint64_t i = 0; i < s->count; i++)
		forget(&s->look[i]);
}

static int add_shard(const struct job *job, struct shard_seal *seal, struct shard_list *list, uint64_t k,
		     struct look *l)
{
	const struct shard_reader_options pages = {.size = sizeof(pages), .pages_only = 1};
	bool there = l->pages;
	char path[FILES_PATH_BYTES], file[64];
	struct shard_error err;
	int rc = EXIT_DONE;

	if (!there) { /* say what is not in order, or mend it */
		rc = interrupted() ? EXIT_INTERRUPTED
				   : published_find(job, k, &job->receipts->before, &l->receipt, &there);
		if (!rc && there)
			rc = files_numbered(path, job->out_dir, "", k, ".shard");
		if (!rc && there && shard_reader_open(&l->pages, path, &pages, &err) != SHARD_OK)
			rc = fail_of_library(&err);
	}
	if (!rc && there) {
		list->there[k] = true;
		list->there_count++;
		rc = receipt_account(&l->receipt, job->plan, job->account);
	}
	snprintf(file, sizeof(file), "%05" PRIu64 ".shard", k);
	if (!rc && there && list->there_count == k + 1 &&
	    shard_seal_add(seal, file, l->pages, l->receipt.sha256, &err) != SHARD_OK)
		rc = fail_of_library(&err);
	forget(l);
	return rc;
}

static int add_ahead(const struct job *job, struct shard_seal *seal, struct shard_list *list)
{
	struct look_ahead a = {.job = job, .turns = turns_open(job->worker_count)};
	struct workers_options w = {
		.ticket_count = (list->shard_count + LOOK_SHARDS - 1) / LOOK_SHARDS,
		.worker_count = job->worker_count < LOOK_THREADS_MAX ? job->worker_count : LOOK_THREADS_MAX,
		.turns = a.turns,
		.progress = &a.progress,
		.context = &a,
		.begin = begin_looking,
		.end = end_looking,
		.assign = assign_shards,
		.work = look_at_shards,
		.give_back = forget_shards,
	};
	uint64_t slot;
	int rc = EXIT_DONE;

	w.slot_count = LOOK_AHEAD * (uint64_t)workers_needed(w.worker_count, w.ticket_count);
	a.slot = xcalloc(w.slot_count, sizeof(*a.slot));
	if (!a.turns)
		rc = fail(EXIT_IO, "out of memory for %u workers", job->worker_count);
	progress_start(&a.progress, "sealing", "shards", list->shard_count);
	if (!rc)
		rc = workers_open(&a.workers, &w);
	while (!rc && (rc = workers_next(a.workers, &slot)) == EXIT_DONE && slot != WORKERS_NO_SLOT) {
		struct slot *s = &a.slot[slot];

		turns_take(a.turns);
		for (uint64_t i = 0; !rc && i < s->count; i++)
			rc = add_shard(job, seal, list, s->first + i, &s->look[i]);
		turns_give(a.turns);
		progress_add(&a.progress, s->count, 0, 0);
		workers_release(a.workers);
	}
	workers_close(a.workers);
	progress_abandon(&a.progress);
	turns_close(a.turns);
	free(a.slot);
	return rc;
}

/* The same by this thread alone. */
static int add_slots(const struct job *job, struct shard_seal *seal, struct shard_list *list)
{
	struct slot slot;
	struct look_ahead a = {.job = job, .slot = &slot};
	int rc = EXIT_DONE;

	memset(&slot, 0, sizeof(slot));
	while (!rc && a.next < list->shard_count) {
		assign_shards(&a, 0);
		look_at_shards(&a, NULL, 0);
		for (uint64_t i = 0; !rc && i < slot.count; i++)
			rc = add_shard(job, seal, list, slot.first + i, &slot.look[i]);
		forget_shards(&a, 0);
	}
	return rc;
}

/* Add all shards; the missing ones are listed, once all were looked at. */
static int add_shards(const struct job *job, struct shard_seal *seal)
{
	struct shard_list list = {.shard_count = job->plan->shard_count};
	int rc = receipt_files_read(job->receipts, job->state_dir);

	if (rc)
		return rc;
	list.there = xcalloc(list.shard_count, sizeof(*list.there));
	rc = list.shard_count > LOOK_SHARDS ? add_ahead(job, seal, &list) : add_slots(job, seal, &list);
	if (!rc && list.there_count < list.shard_count)
		rc = refuse_missing(job, &list);
	shard_list_free(&list);
	return rc;
}

/* ---- the dataset -------------------------------------------------------------------------- */

static int check_account(const struct job *job)
{
	const struct account *a = job->account;

	if (a->written + a->skipped + a->quarantined == a->input_count &&
	    a->skipped + a->quarantined == a->problems.count && a->accepted == a->accepted_inputs.count)
		return EXIT_DONE;
	return fail(EXIT_MISMATCH,
		    "%s: the plan has %" PRIu64 " inputs, but the shards account for %" PRIu64 " written + "
		    "%" PRIu64 " skipped + %" PRIu64 " quarantined; no manifest was written",
		    job->out_dir, a->input_count, a->written, a->skipped, a->quarantined);
}

/* A dataset without records is of no use to anyone, and exit 0 would hide that all inputs were bad. */
static int refuse_empty(const struct job *job)
{
	const struct account *a = job->account;
	struct plan_input input;
	char path[PLAN_PATH_BYTES_MAX];

	if (a->written || !a->problems.count)
		return EXIT_DONE;
	plan_input(job->plan, plan_input_at(job->plan, a->problems.item[0].ordinal), &input);
	plan_input_path(job->plan, &input, path);
	if (a->problems.count == 1)
		return fail(EXIT_BAD, "%s: the only input is bad, so no dataset was made: %s%s%s: %s", job->out_dir,
			    job->source, job->source[0] ? "/" : "", path, a->problems.item[0].message);
	return fail(EXIT_BAD, "%s: all %" PRIu64 " inputs are bad, so no dataset was made; the first is %s%s%s: %s",
		    job->out_dir, a->problems.count, job->source, job->source[0] ? "/" : "", path,
		    a->problems.item[0].message);
}

/* The manifest.  Another process may have been faster with the same one. */
static int write_manifest(const struct job *job, struct shard_seal *seal)
{
	struct shard_error err;

	if (shard_seal_finish(seal, &err) == SHARD_OK)
		return EXIT_DONE;
	if (err.status == SHARD_E_EXISTS && output_is_sealed(job->out_dir, job->plan)) {
		detail("%s: another process sealed it", job->out_dir);
		return EXIT_DONE;
	}
	return fail_of_library(&err);
}

int seal_run(const struct job *job)
{
	const struct plan *plan = job->plan;
	char **names = class_names(plan);
	struct shard_seal_options opt = {
		.size = sizeof(opt),
		.plan_digest = plan->digest,
		.class_names = (const char *const *)names,
		.class_count = plan->class_count,
		.seed = plan->recipe.seed,
		.order = plan->recipe.order,
	};
	struct shard_seal *seal = NULL;
	struct shard_error err;
	int rc = EXIT_DONE;

	job->account->input_count = plan->input_count;
	if (shard_seal_open(&seal, job->out_dir, &opt, &err) != SHARD_OK)
		rc = fail_of_library(&err);
	if (!rc)
		rc = add_shards(job, seal);
	if (!rc)
		rc = check_account(job);
	account_sort(job->account);
	if (!rc && job->quarantine)
		rc = quarantine_list(job->quarantine, plan, job->account);
	if (!rc)
		rc = refuse_empty(job);
	if (!rc)
		rc = write_manifest(job, seal);
	shard_seal_close(seal);
	for (uint64_t i = 0; i < plan->class_count; i++)
		free(names[i]);
	free(names);
	if (!rc)
		rc = output_keep_times(job);
	if (!rc && job->quarantine)
		quarantine_close(job->quarantine, plan);
	return rc ? rc : output_clear_state(job);
}

int seal_recount(const struct job *job)
{
	struct shard_dataset *ds = NULL;
	struct shard_dataset_info info;
	struct shard_reader *reader;
	struct shard_error err;
	int rc = EXIT_DONE;

	job->account->input_count = job->plan->input_count;
	job->account->firsts_unknown = true; /* also if there is no shard */
	if (shard_dataset_open(&ds, job->out_dir, NULL, &err) != SHARD_OK)
		return fail_of_library(&err);
	shard_dataset_info(ds, &info);
	for (uint64_t k = 0; !rc && k < info.shard_count; k++) {
		if (shard_dataset_open_reader(ds, k, &reader, &err) != SHARD_OK) {
			rc = fail_of_library(&err);
			break;
		}
		rc = published_recount(job, k, reader);
		shard_reader_close(reader);
	}
	shard_dataset_close(ds);
	account_sort(job->account);
	return rc ? rc : check_account(job);
}
