/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_pack.c - `shardpack SOURCE` and `shardpack plan SOURCE`, for every source of the table
 *
 * The order of steps: whatever can be found wrong with the command, the source or the room on
 * disk is found before OUT is touched.
 */
#include "tools/shardpack/shardpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "shard.h"
#include "tools/common/exit_code.h"
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
	struct source_place place;
	struct job job;
	struct recipe recipe;
	struct plan plan;
	struct scan scan;
	struct account account;
	struct receipt_files receipts;
	struct stored *stored;
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

static int settle_recipe(struct packing *w)
{
	const struct pack_options *o = w->o;
	const struct cli_args *args = w->args;
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
	return EXIT_DONE;
}

static struct request request_of(struct packing *w)
{
	return (struct request){.o = w->o,
				.args = w->args,
				.place = &w->place,
				.stored = w->stored,
				.recipe = &w->recipe,
				.plan = &w->plan,
				.scan = &w->scan};
}

/* What the options alone say, and whether records of that kind can be. */
static int settle_source(struct packing *w)
{
	struct request r = request_of(w);
	struct shard_schema schema;
	struct shard_error err;
	int (*settle)(const struct request *r) = source_table[w->recipe.source]->settle;
	int code = settle ? settle(&r) : EXIT_DONE;

	if (code == EXIT_DONE && w->recipe.source != SOURCE_IMAGES)
		code = pack_options_unpack(w->o, w->args, &w->recipe.limits);
	if (code == EXIT_DONE && w->recipe.source == SOURCE_IMAGES &&
	    recipe_schema(&w->recipe, &schema, &err) != SHARD_OK)
		code = fail_of_library(&err);
	return code;
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
	int code = EXIT_DONE;

	for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++) {
		if (place[i].path && code == EXIT_DONE)
			code = command_keep_from_sources(&w->place, place[i].option, place[i].path);
		for (size_t k = i; place[i].path && k-- && code == EXIT_DONE;) {
			if (!place[k].path)
				continue;
			code = command_keep_apart(place[i].option, place[i].path, place[k].option, place[k].path);
			if (code == EXIT_DONE && place[i].is_folder)
				code = command_keep_apart(place[k].option, place[k].path, place[i].option,
							  place[i].path);
		}
	}
	return code;
}

static int settle_places(struct packing *w)
{
	const struct pack_options *o = w->o;
	char *quarantine;
	int code = command_open_shelf(&w->plan, o->spool ? o->spool : o->out);

	w->place.paths.shelf = w->plan.text.shelf;
	if (code == EXIT_DONE)
		code = place_open(&w->place, o->sources.items, o->sources.count, o->root);
	if (code != EXIT_DONE)
		return code;
	w->job.source_fd = w->place.root_fd;
	w->job.source = w->place.root;
	w->out = files_absolute(o->out);
	quarantine = o->quarantine ? files_absolute(o->quarantine) : NULL;
	w->report_path = o->report ? files_absolute(o->report) : NULL;
	if (!w->out || (o->quarantine && !quarantine) || (o->report && !w->report_path))
		code = EXIT_IO;
	if (code == EXIT_DONE)
		code = keep_places_apart(w, quarantine);
	if (code == EXIT_DONE && o->report)
		code = command_check_report(w->report_path);
	free(quarantine);
	if (code == EXIT_DONE)
		w->stored = stored_open(&w->place, o->spool ? o->spool : w->out, &w->recipe.limits);
	return code;
}

static int make_plan(struct packing *w)
{
	struct request r = request_of(w);
	struct shard_error err;
	int code = source_scan(&r);

	if (code != EXIT_DONE)
		return code;
	if (recipe_schema(&w->plan.recipe, &w->job.schema, &err) != SHARD_OK)
		return fail_of_library(&err);
	if (w->plan.file_count)
		w->job.stored = w->stored;
	code = plan_settle_shard_size(&w->plan, &w->job.schema, w->o->shard_records, w->o->shard_bytes);
	code = code == EXIT_DONE ? plan_finish(&w->plan) : code;
	code = code == EXIT_DONE ? class_alike_judge(&w->plan, &w->scan, w->o->strict_classes) : code;
	return code == EXIT_DONE ? source_times_collect(&w->times, &w->plan, &w->place, w->stored) : code;
}

/* What is in OUT, and whether that is in the way. */
static int examine_out(const struct packing *w, enum output_state *state)
{
	char why[OUTPUT_WHY_BYTES];
	int code = output_examine(w->o->out, &w->plan, state, why);

	if (code == EXIT_DONE && *state == OUTPUT_FOREIGN)
		code = fail(EXIT_USAGE, "%s: holds %s; nothing was touched", w->o->out, why);
	if (code == EXIT_DONE && *state == OUTPUT_OTHER && !w->o->replace)
		code = fail(EXIT_USAGE, "%s: holds %s; nothing was touched (%s)", w->o->out, why,
			    w->remedy ? w->remedy : "--replace puts the new dataset in its place");
	return code;
}

/* With --replace an unfinished dataset is finished only if its sources are the same. */
static int would_continue(struct packing *w, enum output_state state, bool *same)
{
	*same = false;
	return state == OUTPUT_STARTED ? output_same_sources(w->o->out, &w->plan, &w->times, same) : EXIT_DONE;
}

/* EXIT_MISMATCH if OUT was made of other sources. */
static int check_sources(const struct packing *w, enum output_state state)
{
	if (w->o->trust_names || (state != OUTPUT_SEALED && state != OUTPUT_STARTED))
		return EXIT_DONE;
	return output_check_sources(&w->job, &w->times);
}

static int settle_replacement(struct packing *w, enum output_state *state)
{
	bool same;
	int code;

	w->work_dir = replace_work_dir(w->out);
	if (!w->work_dir)
		return EXIT_IO;
	code = would_continue(w, *state, &same);
	if (code == EXIT_DONE)
		code = replace_prepare(w->work_dir, &w->plan, &w->times);
	if (code != EXIT_DONE || *state == OUTPUT_NEW || same)
		return code;
	code = output_set_dir(&w->job, w->work_dir);
	return code == EXIT_DONE ? output_examine(w->work_dir, &w->plan, state, w->why) : code;
}

/* Where to build: OUT, or beside it.  Sets w->sealed if nothing is to be done. */
static int choose_output(struct packing *w, enum output_state *state)
{
	int code = examine_out(w, state);

	if (code != EXIT_DONE)
		return code;
	if (w->o->replace)
		return settle_replacement(w, state);
	w->sealed = *state == OUTPUT_SEALED;
	return check_sources(w, *state);
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
	int code = command_build(&w->job, w->o->sandbox);

	if (code != EXIT_DONE)
		return code;
	count_again(w);
	code = seal_run(&w->job);
	if (code == EXIT_DONE && w->work_dir && w->job.out_dir == w->work_dir)
		code = replace_swap(w->out, w->work_dir);
	if (code == EXIT_DONE)
		code = output_set_dir(&w->job, w->o->out);
	w->sealed = code == EXIT_DONE;
	return code;
}

/* The same dataset is there. */
static int find_sealed(struct packing *w)
{
	int code;

	note("%s: the same dataset is there already (same names, sizes%s); nothing to do", w->o->out,
	     w->o->trust_names ? " and options; times were not compared" : ", times and options");
	w->began = true;
	count_again(w);
	/* A run that was stopped behind the manifest has not done that. */
	code = output_keep_times(&w->job);
	if (code == EXIT_DONE)
		code = output_clear_state(&w->job);
	return code == EXIT_DONE ? seal_recount(&w->job) : code;
}

static int carry_out(struct packing *w, bool plan_only)
{
	enum output_state state = OUTPUT_NEW;
	bool all_empty;
	int code = choose_output(w, &state);

	if (code != EXIT_DONE)
		return code;
	if (w->sealed)
		return find_sealed(w);
	if (w->plan.bad_count && w->recipe.on_error == ON_ERROR_FAIL) {
		w->began = true;
		return known_bad_look(&w->job, w->o->trust_names ? NULL : &w->times);
	}
	if (state == OUTPUT_STARTED)
		w->job.exif_said |= output_exif_said(&w->job);
	code = exif_decision_look(&w->job, w->o->sandbox);
	if (code != EXIT_DONE)
		return code;
	if (w->o->quarantine) {
		code = quarantine_open(&w->quarantine, w->o->quarantine);
		w->job.quarantine = w->quarantine;
	}
	if (code == EXIT_DONE && !plan_only && state == OUTPUT_NEW)
		code = space_check(&w->job, space_needed(&w->job, NULL) + w->plan.text.bytes);
	w->made_out = code == EXIT_DONE && access(w->job.out_dir, F_OK) != 0;
	if (code == EXIT_DONE)
		code = output_begin(&w->job, w->place.root_absolute, &w->times);
	if (code == EXIT_DONE)
		code = output_load_decoders(&w->job, &w->plan);
	if (code == EXIT_DONE)
		code = check_sources(w, OUTPUT_STARTED); /* the plan may be there of before */
	w->job.times = w->o->trust_names ? NULL : &w->times;
	if (code != EXIT_DONE || plan_only)
		return code;
	w->began = true;
	code = build_and_seal(w);
	/* No record was published: keep nothing that would be in the way of another plan. */
	all_empty = w->account.skipped + w->account.quarantined == w->plan.input_count;
	if ((code == EXIT_BAD || code == EXIT_USAGE) && !w->account.written && (state == OUTPUT_NEW || all_empty))
		output_give_up(&w->job, w->made_out, all_empty);
	return code;
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
	int code = dry_run(&w->job, &w->scan);

	if (code == EXIT_DONE)
		code = examine_out(w, &state);
	if (code == EXIT_DONE && w->o->replace && state != OUTPUT_NEW)
		code = would_continue(w, state, &same);
	else if (code == EXIT_DONE)
		code = check_sources(w, state);
	if (code == EXIT_DONE && state != OUTPUT_SEALED)
		code = exif_decision_look(&w->job, w->o->sandbox);
	if (code == EXIT_DONE)
		printf("output %s\n", words[same ? state : OUTPUT_OTHER]);
	return code;
}

/* There was nothing to do but to plan. */
static int report_plan(struct packing *w, struct report *r, int code)
{
	int written = EXIT_DONE;

	w->account.input_count = w->plan.input_count;
	r->planned = true;
	r->exit_code = code;
	r->elapsed_ns = clock_now_ns() - w->start_ns;
	account_sort(&w->account);
	if (w->report_path)
		written = report_file_write(r, w->report_path);
	return code == EXIT_DONE ? written : code;
}

static int run_with_places(struct packing *w, bool plan_only)
{
	struct report report = {.job = &w->job, .scan = &w->scan};
	int code = output_set_dir(&w->job, w->o->out);

	if (code == EXIT_DONE)
		code = make_plan(w);
	if (code == EXIT_DONE && w->o->dry_run)
		code = show_plan(w);
	if (code == EXIT_DONE && (plan_only || w->o->dry_run))
		code = known_bad_judge(&w->job, &w->began);
	if (code != EXIT_DONE && !w->began)
		return code;
	if (w->o->dry_run)
		return report_plan(w, &report, code);
	w->job.max_bad = !plan_only && cli_given(w->args, "max-bad") ? &w->o->max_bad : NULL;
	code = code == EXIT_DONE ? carry_out(w, plan_only) : code;
	if (plan_only && code == EXIT_DONE && !w->sealed) {
		command_tell_plan(&w->job, &w->scan);
		return report_plan(w, &report, code);
	}
	w->account.input_count = w->plan.input_count; /* also when a failure came before they were counted */
	report.exit_code = code;
	report.sealed = w->sealed;
	report.elapsed_ns = clock_now_ns() - w->start_ns;
	/* A refusal is one line. */
	return w->began && code != EXIT_USAGE ? command_finish(&report, w->report_path) : code;
}

static int run(const struct cli_args *args, bool plan_only)
{
	struct packing w = {.o = args->options, .args = args, .start_ns = clock_now_ns(), .place.root_fd = -1};
	int code;

	w.recipe.source = args->verb->row;
	w.job.plan = &w.plan;
	command_begin_build(&w.job, &w.account, &w.receipts);
	w.job.read_back = w.o->read_back == 0;
	w.job.exif_said = w.recipe.source == SOURCE_IMAGES && cli_given(args, "exif");
	if (w.o->jobs)
		w.job.worker_count = (unsigned)w.o->jobs;
	w.remedy = plan_only ? command_plan_again(w.o->out) : NULL;
	w.job.remedy = w.remedy ? w.remedy : "pack everything again with --replace";
	code = settle_recipe(&w);
	if (code == EXIT_DONE)
		code = settle_source(&w);
	if (code == EXIT_DONE)
		code = settle_places(&w);
	if (code == EXIT_DONE)
		code = run_with_places(&w, plan_only);
	command_end_build(&w.job);
	source_times_close(&w.times);
	stored_close(w.stored);
	place_close(&w.place);
	plan_free(&w.plan);
	recipe_free(&w.recipe);
	scan_free(&w.scan);
	account_free(&w.account);
	free(w.quarantine);
	free(w.out);
	free(w.report_path);
	free(w.work_dir);
	free(w.remedy);
	return code;
}

int cmd_pack(const struct cli_args *args)
{
	return run(args, false);
}

int cmd_plan(const struct cli_args *args)
{
	return run(args, true);
}
