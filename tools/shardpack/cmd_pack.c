/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_pack.c - `shardpack SOURCE` and `shardpack plan SOURCE`, for every source of the table
 *
 * The order of steps: everything that can be found wrong with the command, the source or the room on
 * disk is found before OUT is touched.
 */
#include "tools/shardpack/shardpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "shard_pack.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/make/make.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/report/report.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/sources/sources.h"

struct packing {
	const struct pack_options *o;
	const struct cli_args *args;
	struct request request; /* what a source is asked; it points to what follows here */
	struct source_root root;
	struct job job;
	struct recipe recipe;
	struct plan plan;
	struct scan scan;
	struct account account;
	struct receipt_files receipts;
	struct source_times times; /* as they are */
	char *out;		   /* absolute */
	char *report_path;	   /* absolute */
	char *quarantine;	   /* absolute, once it is there */
	char *work_dir;		   /* where a replacement is built, or NULL */
	uint64_t start_ns;
	char *remedy; /* for job.remedy, or NULL */
	bool sealed;
	bool began;    /* something may have been written, so there is a run to tell of */
	bool made_out; /* the folder was not there before */
	char why[OUTPUT_WHY_BYTES];
};

/* What the options alone say, and whether records of that kind can be. */
static int settle_options(struct packing *w)
{
	const struct pack_options *o = w->o;
	const struct cli_args *args = w->args;
	int (*settle)(const struct request *r) = source_table[w->recipe.source]->settle;
	bool is_images = w->recipe.source == SOURCE_IMAGES;
	struct shard_schema schema;
	struct shard_error err;
	int rc;

	w->recipe.codec = o->compress ? SHARD_LZ4 : SHARD_RAW;
	w->recipe.align = (uint32_t)o->align;
	w->recipe.order = o->order ? SHARD_ORDER_SOURCE : SHARD_ORDER_SHUFFLE;
	w->recipe.seed = o->order ? 0 : o->seed; /* one order, one plan */
	w->recipe.on_error = (uint32_t)o->on_error;
	if (w->recipe.on_error == ON_ERROR_QUARANTINE && !o->quarantine)
		return cli_misuse(args, "--on-error quarantine needs --quarantine DIR");
	if (w->recipe.on_error != ON_ERROR_QUARANTINE && o->quarantine)
		return cli_misuse(args, "--quarantine DIR needs --on-error quarantine");
	if (w->recipe.order == SHARD_ORDER_SOURCE && cli_given(args, "seed"))
		return cli_misuse(args, "--seed needs --order shuffle");
	if (o->shard_bytes && o->shard_records)
		return cli_misuse(args, "--shard-records and --shard-bytes exclude each other");
	rc = settle ? settle(&w->request) : EXIT_DONE;
	if (rc == EXIT_DONE && !is_images)
		rc = pack_options_unpack(o, args, &w->recipe.limits);
	if (rc == EXIT_DONE && is_images && recipe_schema(&w->recipe, &schema, &err) != SHARD_OK)
		rc = fail_of_library(&err);
	return rc;
}

/*
 * Source, output, quarantine and report lie apart, or a run would become the input of the next.
 * Each place is compared with those before it.
 */
static int keep_places_apart(const struct packing *w, const char *quarantine)
{
	const struct {
		const char *option, *path; /* NULL: it was not given */
		bool is_folder;
	} place[] = {
		{"--out", w->out, true},
		{"--quarantine", quarantine, true},
		{"--report", w->report_path, false},
	};
	int rc = EXIT_DONE;

	for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++) {
		if (place[i].path && rc == EXIT_DONE)
			rc = command_keep_from_sources(&w->root, place[i].option, place[i].path);
		for (size_t k = i; place[i].path && k-- && rc == EXIT_DONE;) {
			if (!place[k].path)
				continue;
			rc = command_keep_apart(place[i].option, place[i].path, place[k].option, place[k].path);
			if (rc == EXIT_DONE && place[i].is_folder)
				rc = command_keep_apart(place[k].option, place[k].path, place[i].option, place[i].path);
		}
	}
	return rc;
}

static int settle_places(struct packing *w)
{
	const struct pack_options *o = w->o;
	char *quarantine;
	int rc;

	command_open_shelf(&w->plan, o->spool ? o->spool : o->out);
	w->root.paths.shelf = w->plan.text.shelf;
	rc = source_root_open(&w->root, o->sources.items, o->sources.count, o->root);
	if (rc != EXIT_DONE)
		return rc;
	w->job.source_fd = w->root.fd;
	w->job.source = w->root.name;
	w->out = files_absolute(o->out);
	quarantine = o->quarantine ? files_absolute(o->quarantine) : NULL;
	w->report_path = o->report ? files_absolute(o->report) : NULL;
	if (!w->out || (o->quarantine && !quarantine) || (o->report && !w->report_path))
		rc = EXIT_IO;
	if (rc == EXIT_DONE)
		rc = keep_places_apart(w, quarantine);
	if (rc == EXIT_DONE && o->report)
		rc = command_check_report(w->report_path);
	free(quarantine);
	if (rc == EXIT_DONE)
		w->request.source_files = source_files_open(&w->root, o->spool ? o->spool : w->out, &w->recipe.limits);
	return rc;
}

static int make_plan(struct packing *w)
{
	struct shard_error err;
	int rc = source_scan(&w->request);

	if (rc != EXIT_DONE)
		return rc;
	if (recipe_schema(&w->plan.recipe, &w->job.schema, &err) != SHARD_OK)
		return fail_of_library(&err);
	if (w->plan.file_count)
		w->job.source_files = w->request.source_files;
	if (shard_schema_shard_records(&w->job.schema, w->o->shard_records, w->o->shard_bytes, w->plan.input_count,
				       &w->plan.recipe.shard_records, &err) != SHARD_OK)
		return fail_of_library(&err);
	rc = plan_finish(&w->plan);
	rc = rc == EXIT_DONE ? class_alike_judge(&w->plan, &w->scan, w->o->strict_classes) : rc;
	return rc == EXIT_DONE ? source_times_collect(&w->times, &w->plan, &w->root, w->request.source_files) : rc;
}

/* What is in OUT, and whether that is in the way. */
static int examine_out(const struct packing *w, enum output_state *state)
{
	char why[OUTPUT_WHY_BYTES];
	int rc = output_examine(w->o->out, &w->plan, state, why);

	if (rc == EXIT_DONE && *state == OUTPUT_FOREIGN)
		rc = fail(EXIT_USAGE, "%s: holds %s; nothing was touched", w->o->out, why);
	if (rc == EXIT_DONE && *state == OUTPUT_OTHER && !w->o->replace)
		rc = fail(EXIT_USAGE, "%s: holds %s; nothing was touched (%s)", w->o->out, why,
			  w->remedy ? w->remedy : "--replace puts the new dataset in its place");
	return rc;
}

/* EXIT_MISMATCH if OUT was made of other sources. */
static int check_sources(const struct packing *w, enum output_state state)
{
	if (w->o->trust_names || (state != OUTPUT_SEALED && state != OUTPUT_STARTED))
		return EXIT_DONE;
	return output_check_sources(&w->job, &w->times);
}

/* Where to build: OUT, or beside it.  Sets w->sealed if nothing is to be done. */
static int choose_output(struct packing *w, enum output_state *state)
{
	bool same = false;
	int rc = examine_out(w, state);

	if (rc == EXIT_DONE && !w->o->replace) {
		w->sealed = *state == OUTPUT_SEALED;
		return check_sources(w, *state);
	}
	if (rc != EXIT_DONE)
		return rc;
	w->work_dir = replace_work_dir(w->out);
	/* With --replace an unfinished dataset is finished only if its sources are the same. */
	if (*state == OUTPUT_STARTED)
		rc = output_same_sources(w->o->out, &w->plan, &w->times, &same);
	if (rc == EXIT_DONE)
		rc = replace_prepare(w->work_dir, &w->plan, &w->times);
	if (rc != EXIT_DONE || *state == OUTPUT_NEW || same)
		return rc;
	rc = output_set_dir(&w->job, w->work_dir);
	return rc == EXIT_DONE ? output_examine(w->work_dir, &w->plan, state, w->why) : rc;
}

/* What is on disk is counted now, of this process and of others. */
static void count_again(struct packing *w)
{
	struct account whole = {.shown = w->account.shown, .accepted_shown = w->account.accepted_shown};

	account_free(&w->account);
	w->account = whole;
}

static int build_and_seal(struct packing *w)
{
	int rc = command_build(&w->job, w->o->sandbox);

	if (rc != EXIT_DONE)
		return rc;
	count_again(w);
	rc = seal_run(&w->job);
	if (rc == EXIT_DONE && w->work_dir && w->job.out_dir == w->work_dir)
		rc = replace_swap(w->out, w->work_dir);
	if (rc == EXIT_DONE)
		rc = output_set_dir(&w->job, w->o->out);
	w->sealed = rc == EXIT_DONE;
	return rc;
}

/* The same dataset is there; a run that was stopped may have left its last steps undone. */
static int finish_sealed(struct packing *w)
{
	int rc;

	note("%s: the same dataset is there already (same names, sizes%s); nothing to do", w->o->out,
	     w->o->trust_names ? " and options; times were not compared" : ", times and options");
	w->began = true;
	count_again(w);
	/* A run that was stopped behind the manifest has not done that. */
	rc = output_keep_times(&w->job);
	if (rc == EXIT_DONE && w->o->quarantine)
		quarantine_close(w->o->quarantine, &w->plan);
	if (rc == EXIT_DONE)
		rc = output_clear_state(&w->job);
	return rc == EXIT_DONE ? seal_recount(&w->job) : rc;
}

static int carry_out(struct packing *w, bool plan_only)
{
	enum output_state state = OUTPUT_NEW;
	bool all_empty;
	int rc = choose_output(w, &state);

	if (rc != EXIT_DONE)
		return rc;
	if (w->sealed)
		return finish_sealed(w);
	if (w->plan.bad_count && w->recipe.on_error == ON_ERROR_FAIL) {
		w->began = true;
		return known_bad_look(&w->job, w->o->trust_names ? NULL : &w->times);
	}
	rc = w->o->quarantine ? quarantine_check(w->o->quarantine, &w->plan) : rc;
	if (rc != EXIT_DONE)
		return rc;
	if (state == OUTPUT_STARTED)
		w->job.exif_said |= output_exif_said(&w->job);
	rc = exif_decision_look(&w->job, w->o->sandbox);
	if (rc != EXIT_DONE)
		return rc;
	if (!plan_only && state == OUTPUT_NEW)
		rc = space_check(&w->job, space_needed(&w->job, NULL) + w->plan.text.bytes);
	if (rc == EXIT_DONE && w->o->quarantine) {
		rc = quarantine_open(&w->quarantine, w->o->quarantine, &w->plan);
		w->job.quarantine = w->quarantine;
	}
	w->made_out = rc == EXIT_DONE && access(w->job.out_dir, F_OK) != 0;
	if (rc == EXIT_DONE)
		rc = output_begin(&w->job, w->root.absolute, &w->times);
	if (rc == EXIT_DONE)
		rc = output_load_decoders(&w->job, &w->plan);
	if (rc == EXIT_DONE)
		rc = check_sources(w, OUTPUT_STARTED); /* the plan may be there of before */
	w->job.times = w->o->trust_names ? NULL : &w->times;
	if (rc != EXIT_DONE || plan_only)
		return rc;
	w->began = true;
	rc = build_and_seal(w);
	/* No record was published: keep nothing that would be in the way of another plan. */
	all_empty = w->account.skipped + w->account.quarantined == w->plan.input_count;
	if ((rc == EXIT_BAD || rc == EXIT_USAGE) && !w->account.written && (state == OUTPUT_NEW || all_empty))
		output_give_up(&w->job, w->made_out, all_empty);
	return rc;
}

/* The plan, and what carry_out() would find. */
static int show_plan(struct packing *w)
{
	static const char *const words[] = {[OUTPUT_NEW] = "new",
					    [OUTPUT_STARTED] = "unfinished; would continue",
					    [OUTPUT_SEALED] = "already there; nothing to do",
					    [OUTPUT_OTHER] = "another dataset; would be replaced",
					    [OUTPUT_FOREIGN] = ""};
	enum output_state state;
	bool same = true;
	int rc = dry_run(&w->job, &w->scan);

	if (rc == EXIT_DONE)
		rc = examine_out(w, &state);
	if (rc == EXIT_DONE && w->o->replace && state != OUTPUT_NEW) {
		same = false;
		if (state == OUTPUT_STARTED)
			rc = output_same_sources(w->o->out, &w->plan, &w->times, &same);
	} else if (rc == EXIT_DONE) {
		rc = check_sources(w, state);
	}
	if (rc == EXIT_DONE && state != OUTPUT_SEALED && w->o->quarantine)
		rc = quarantine_check(w->o->quarantine, &w->plan);
	if (rc == EXIT_DONE && state != OUTPUT_SEALED)
		rc = exif_decision_look(&w->job, w->o->sandbox);
	if (rc == EXIT_DONE)
		printf("output %s\n", words[same ? state : OUTPUT_OTHER]);
	return rc;
}

/* There was nothing to do but to plan. */
static int report_plan(struct packing *w, struct report *r, int rc)
{
	int written = EXIT_DONE;

	w->account.input_count = w->plan.input_count;
	r->planned = true;
	r->exit_code = rc;
	r->elapsed_ns = clock_now_ns() - w->start_ns;
	account_sort(&w->account);
	if (w->report_path)
		written = report_file_write(r, w->report_path);
	return rc == EXIT_DONE ? written : rc;
}

static int run_with_places(struct packing *w, bool plan_only)
{
	struct report report = {.job = &w->job, .scan = &w->scan};
	int rc = output_set_dir(&w->job, w->o->out);

	if (rc == EXIT_DONE)
		rc = make_plan(w);
	if (rc == EXIT_DONE && w->o->dry_run)
		rc = show_plan(w);
	if (rc == EXIT_DONE && (plan_only || w->o->dry_run))
		rc = known_bad_judge(&w->job, &w->began);
	if (rc != EXIT_DONE && !w->began)
		return rc;
	if (w->o->dry_run)
		return report_plan(w, &report, rc);
	w->job.max_bad = !plan_only && cli_given(w->args, "max-bad") ? &w->o->max_bad : NULL;
	rc = rc == EXIT_DONE ? carry_out(w, plan_only) : rc;
	if (plan_only && rc == EXIT_DONE && !w->sealed) {
		command_tell_plan(&w->job, &w->scan);
		return report_plan(w, &report, rc);
	}
	w->account.input_count = w->plan.input_count; /* also when a failure came before they were counted */
	report.exit_code = rc;
	report.sealed = w->sealed;
	report.elapsed_ns = clock_now_ns() - w->start_ns;
	/* A refusal is one line. */
	return w->began && rc != EXIT_USAGE ? command_finish(&report, w->report_path) : rc;
}

static int run(const struct cli_args *args, bool plan_only)
{
	struct packing w = {.o = args->options, .args = args, .start_ns = clock_now_ns(), .root.fd = -1};
	int rc;

	w.request = (struct request){
		.o = w.o, .args = args, .root = &w.root, .recipe = &w.recipe, .plan = &w.plan, .scan = &w.scan};
	w.recipe.source = args->verb->row;
	w.job.plan = &w.plan;
	command_begin_build(&w.job, &w.account, &w.receipts);
	w.job.read_back = w.o->read_back == 0;
	w.job.exif_said = w.recipe.source == SOURCE_IMAGES && cli_given(args, "exif");
	if (w.o->jobs)
		w.job.worker_count = (unsigned)w.o->jobs;
	w.remedy = plan_only ? command_plan_again(w.o->out) : NULL;
	w.job.remedy = w.remedy ? w.remedy : "pack everything again with --replace";
	rc = settle_options(&w);
	if (rc == EXIT_DONE)
		rc = settle_places(&w);
	if (rc == EXIT_DONE)
		rc = run_with_places(&w, plan_only);
	command_end_build(&w.job);
	source_times_close(&w.times);
	source_files_close(w.request.source_files);
	source_root_close(&w.root);
	plan_free(&w.plan);
	recipe_free(&w.recipe);
	scan_free(&w.scan);
	account_free(&w.account);
	free(w.quarantine);
	free(w.out);
	free(w.report_path);
	free(w.work_dir);
	free(w.remedy);
	return rc;
}

int cmd_pack(const struct cli_args *args)
{
	return run(args, false);
}

int cmd_plan(const struct cli_args *args)
{
	return run(args, true);
}
