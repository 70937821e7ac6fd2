/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_images.c - `shardpack images` and `shardpack plan images`
 *
 * The order of steps: whatever can be found wrong with the command, the source or the room on
 * disk is found before OUT is touched.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/human.h"
#include "tools/shardpack/build.h"
#include "tools/shardpack/command.h"
#include "tools/shardpack/dry_run.h"
#include "tools/shardpack/files.h"
#include "tools/shardpack/images_options.h"
#include "tools/shardpack/output.h"
#include "tools/shardpack/replace.h"
#include "tools/shardpack/scan_images.h"
#include "tools/shardpack/seal.h"
#include "tools/shardpack/space.h"

#define DEFAULT_RESIZE	    256 /* with the crop of 224, what the field calls the standard evaluation transform */
#define DEFAULT_CROP	    224
#define DEFAULT_SHARDS	    8
#define DEFAULT_SHARD_BYTES_MIN (UINT64_C(64) << 20)
#define DEFAULT_SHARD_BYTES_MAX (UINT64_C(1) << 30)
#define SHARD_BYTES_MAX	    (UINT64_C(1) << 43) /* half of what format/SHARD.md allows: the rest is for the tables */
#define SHARD_RECORDS_MAX   (UINT64_C(1) << 40)

struct images {
	const struct images_options *o;
	struct job job;
	struct recipe recipe;
	struct plan plan;
	struct scan scan;
	struct account account;
	struct quarantine quarantine;
	char *source, *out; /* absolute */
	char *report_path;  /* absolute */
	char *work_dir;	    /* where a replacement is built, or NULL */
	uint64_t start_ns;
	bool sealed;
	bool began;    /* something may have been written, so there is a run to tell of */
	bool made_out; /* the folder was not there before */
};

static uint64_t record_stride(const struct images *w)
{
	uint64_t stride = w->job.schema.group[0].stride + w->job.schema.group[1].stride;

	assert(stride); /* shard_schema_lay_out() saw to it */
	return stride;
}

static int settle_transform(struct images *w, const struct cli_args *args)
{
	const struct images_options *o = w->o;
	static const enum resize_filter filters[] = {RESIZE_BILINEAR, RESIZE_BICUBIC, RESIZE_LANCZOS, RESIZE_BOX};
	struct transform_options *t = &w->recipe.transform;

	t->resize_short = (uint32_t)o->resize;
	t->crop = (uint32_t)o->crop;
	t->filter = filters[o->filter];
	t->layout = o->layout ? IMAGE_CHW : IMAGE_HWC;
	if (!o->resize && !o->crop) {
		t->resize_short = DEFAULT_RESIZE;
		t->crop = DEFAULT_CROP;
		note("no size was given: --resize %d --crop %d", DEFAULT_RESIZE, DEFAULT_CROP);
	} else if (!o->crop) {
		t->crop = t->resize_short;
		note("no crop was given: --crop %" PRIu32 ", all of the shorter side", t->crop);
	} else if (o->resize && o->crop > o->resize) {
		return cli_misuse(args, "--crop %" PRIu64 " is larger than --resize %" PRIu64, o->crop, o->resize);
	}
	return EXIT_DONE;
}

/* How many records go into a shard, if the command says so; needs the schema. */
static int settle_shard_size(struct images *w, const struct cli_args *args)
{
	uint64_t stride = record_stride(w);
	uint64_t records = w->o->shard_records ? w->o->shard_records : w->o->shard_bytes / stride;

	if (w->o->shard_bytes && w->o->shard_records)
		return cli_misuse(args, "--shard-records and --shard-bytes exclude each other");
	if (records > SHARD_BYTES_MAX / stride || records > SHARD_RECORDS_MAX)
		return fail(EXIT_USAGE,
			    "shards of %" PRIu64 " records of %" PRIu64 " bytes; the limit is %" PRIu64
			    " bytes, so %" PRIu64 " records",
			    records, stride, SHARD_BYTES_MAX, SHARD_BYTES_MAX / stride);
	if (w->o->shard_bytes && !records)
		records = 1;
	w->recipe.shard_records = records;
	return EXIT_DONE;
}

/*
 * An eighth of the dataset, within limits: then the last shard, whose way to the disk and back overlaps with nothing, is
 * a small part of the whole, and what a killed run has to make again is small too.
 */
static uint64_t default_shard_records(const struct images *w)
{
	uint64_t stride = record_stride(w), records = (w->plan.input_count + DEFAULT_SHARDS - 1) / DEFAULT_SHARDS;

	if (records < DEFAULT_SHARD_BYTES_MIN / stride)
		records = DEFAULT_SHARD_BYTES_MIN / stride;
	if (records > DEFAULT_SHARD_BYTES_MAX / stride)
		records = DEFAULT_SHARD_BYTES_MAX / stride;
	return records ? records : 1;
}

static int settle_recipe(struct images *w, const struct cli_args *args)
{
	const struct images_options *o = w->o;
	struct shard_error err;
	int code = settle_transform(w, args);

	if (code != EXIT_DONE)
		return code;
	w->recipe.codec = o->compress ? SHARD_LZ4 : SHARD_RAW;
	w->recipe.align = (uint32_t)o->align;
	w->recipe.order = o->order ? SHARD_ORDER_SOURCE : SHARD_ORDER_SHUFFLE;
	w->recipe.seed = o->seed;
	w->recipe.on_error = (uint32_t)o->on_error;
	if (w->recipe.on_error == ON_ERROR_QUARANTINE && !o->quarantine)
		return cli_misuse(args, "--on-error quarantine needs --quarantine DIR");
	if (w->recipe.on_error != ON_ERROR_QUARANTINE && o->quarantine)
		return cli_misuse(args, "--quarantine DIR needs --on-error quarantine");
	if (w->recipe.order == SHARD_ORDER_SOURCE && cli_given(args, "seed"))
		return cli_misuse(args, "--seed belongs to --order shuffle");
	if (w->recipe.order == SHARD_ORDER_SOURCE)
		w->recipe.seed = 0; /* one order, one plan */
	if (recipe_schema(&w->recipe, &w->job.schema, &err) != SHARD_OK)
		return fail(exit_code_of_status(err.status), "%s", err.message);
	return settle_shard_size(w, args);
}

/* Source, output, quarantine and report must not lie in each other, or one run would become the next one's input. */
static int settle_places(struct images *w)
{
	const struct images_options *o = w->o;
	char *quarantine = NULL;
	int code = EXIT_DONE;

	w->job.source_fd = command_open_source(o->source);
	if (w->job.source_fd < 0)
		return EXIT_IO;
	w->source = files_absolute(o->source);
	w->out = files_absolute(o->out);
	if (o->quarantine)
		quarantine = files_absolute(o->quarantine);
	if (o->report)
		w->report_path = files_absolute(o->report);
	if (!w->source || !w->out || (o->quarantine && !quarantine) || (o->report && !w->report_path))
		code = EXIT_IO;
	if (code == EXIT_DONE)
		code = command_keep_apart("--out", w->out, "the source", w->source);
	if (code == EXIT_DONE)
		code = command_keep_apart("the source", w->source, "--out", w->out);
	if (code == EXIT_DONE && quarantine)
		code = command_keep_apart("--quarantine", quarantine, "the source", w->source);
	if (code == EXIT_DONE && quarantine)
		code = command_keep_apart("the source", w->source, "--quarantine", quarantine);
	if (code == EXIT_DONE && quarantine)
		code = command_keep_apart("--quarantine", quarantine, "--out", w->out);
	if (code == EXIT_DONE && quarantine)
		code = command_keep_apart("--out", w->out, "--quarantine", quarantine);
	if (code == EXIT_DONE && o->report)
		code = command_keep_apart("--report", w->report_path, "the source", w->source);
	if (code == EXIT_DONE && o->report && quarantine)
		code = command_keep_apart("--report", w->report_path, "--quarantine", quarantine);
	if (code == EXIT_DONE && o->report)
		code = command_keep_apart("--report", w->report_path, "--out", w->out);
	if (code == EXIT_DONE && o->report)
		code = command_check_report(w->report_path);
	free(quarantine);
	return code;
}

static int make_plan(struct images *w)
{
	int code = scan_images(w->job.source_fd, w->o->source, w->o->classes, &w->recipe, &w->plan, &w->scan);

	if (code != EXIT_DONE)
		return code;
	if (!w->plan.recipe.shard_records)
		w->plan.recipe.shard_records = default_shard_records(w);
	return plan_finish(&w->plan);
}

/* What is in OUT, and whether that is in the way. */
static int examine_out(const struct images *w, enum output_state *state)
{
	char why[OUTPUT_WHY_BYTES];
	int code = output_examine(w->o->out, &w->plan, state, why);

	if (code == EXIT_DONE && (*state == OUTPUT_FOREIGN || (*state == OUTPUT_OTHER && !w->o->replace)))
		code = fail(EXIT_USAGE, "%s: holds %s; nothing was touched%s", w->o->out, why,
			    *state == OUTPUT_OTHER ? " (--replace puts the new dataset in its place)" : "");
	return code;
}

/* Where to build: OUT, or beside it.  Sets w->sealed if nothing is to be done. */
static int choose_output(struct images *w, enum output_state *state)
{
	char why[OUTPUT_WHY_BYTES];
	int code = examine_out(w, state);

	if (code != EXIT_DONE)
		return code;
	w->sealed = *state == OUTPUT_SEALED;
	if (!w->o->replace)
		return EXIT_DONE;
	w->work_dir = replace_work_dir(w->out);
	if (!w->work_dir)
		return EXIT_IO;
	code = replace_prepare(w->work_dir, &w->plan);
	if (code == EXIT_DONE && w->sealed)
		code = output_remove(w->work_dir); /* a run that was killed after the exchange */
	if (code == EXIT_DONE && !w->sealed && *state == OUTPUT_OTHER)
		code = output_set_dir(&w->job, w->work_dir);
	if (code == EXIT_DONE && !w->sealed && *state == OUTPUT_OTHER)
		code = output_examine(w->work_dir, &w->plan, state, why);
	return code;
}

static int build_and_seal(struct images *w)
{
	struct account whole = {0};
	int code = build_run(&w->job);

	if (code != EXIT_DONE)
		return code;
	/* What counts is what is on disk, whoever wrote it. */
	whole.shown = w->account.shown;
	account_free(&w->account);
	w->account = whole;
	code = seal_run(&w->job);
	if (code == EXIT_DONE && w->work_dir && w->job.out_dir == w->work_dir)
		code = replace_swap(w->out, w->work_dir);
	if (code == EXIT_DONE)
		code = output_set_dir(&w->job, w->o->out);
	w->sealed = code == EXIT_DONE;
	return code;
}

static int carry_out(struct images *w, bool plan_only)
{
	enum output_state state = OUTPUT_NEW;
	int code = choose_output(w, &state);

	if (code != EXIT_DONE)
		return code;
	if (w->sealed) {
		note("%s: this very dataset is there already (same names, sizes and options); nothing to do", w->o->out);
		w->began = true;
		code = output_clear_state(&w->job);
		return code == EXIT_DONE ? seal_recount(&w->job) : code;
	}
	if (w->o->quarantine) {
		code = quarantine_open(&w->quarantine, w->o->quarantine);
		w->job.quarantine = &w->quarantine;
	}
	if (code == EXIT_DONE && !plan_only && state == OUTPUT_NEW)
		code = space_check(&w->job, space_needed(&w->job, NULL) + w->plan.text.bytes);
	w->made_out = code == EXIT_DONE && access(w->job.out_dir, F_OK) != 0;
	if (code == EXIT_DONE && state != OUTPUT_SEALED)
		code = output_begin(&w->job, w->source);
	if (code != EXIT_DONE || plan_only)
		return code;
	w->began = true;
	code = build_and_seal(w);
	/* Bad input, and no shard was published: nothing is worth keeping, and nothing shall be in the way of another plan. */
	if (code == EXIT_BAD && !w->account.written && state == OUTPUT_NEW)
		output_give_up(&w->job, w->made_out);
	return code;
}

static void tell_plan(const struct images *w)
{
	struct text words = {0}, digest = {0};

	text_hex(&digest, w->plan.digest, sizeof(w->plan.digest));
	text_shell_word(&words, w->o->out);
	report_ignored(&w->scan);
	if (!text_failed(&words) && !text_failed(&digest)) {
		note("plan %s: %" PRIu64 " inputs in %" PRIu64 " shards", digest.data, w->plan.input_count,
		     w->plan.shard_count);
		note("next: shardpack build %s --part 0/N, and so on to N-1, anywhere; then shardpack seal %s",
		     words.data, words.data);
	}
	text_free(&words);
	text_free(&digest);
}

/* The plan, and what carry_out() would find. */
static int show_plan(const struct images *w)
{
	static const char *const words[] = {[OUTPUT_NEW] = "new",
					    [OUTPUT_STARTED] = "unfinished; would continue",
					    [OUTPUT_SEALED] = "already there; nothing to do",
					    [OUTPUT_OTHER] = "another dataset; would be replaced",
					    [OUTPUT_FOREIGN] = ""};
	enum output_state state;
	int code = dry_run(&w->job, &w->scan);

	if (code == EXIT_DONE)
		code = examine_out(w, &state);
	if (code == EXIT_DONE)
		printf("output %s\n", words[state]);
	return code;
}

static int run_with_places(struct images *w, const struct cli_args *args, bool plan_only)
{
	struct report report = {.job = &w->job, .scan = &w->scan};
	int code = output_set_dir(&w->job, w->o->out);

	if (code == EXIT_DONE)
		code = make_plan(w);
	if (code != EXIT_DONE)
		return code;
	if (w->o->dry_run)
		return show_plan(w);
	w->job.max_bad = !plan_only && cli_given(args, "max-bad") ? &w->o->max_bad : NULL;
	code = carry_out(w, plan_only);
	if (plan_only && code == EXIT_DONE && !w->sealed) {
		tell_plan(w);
		return code;
	}
	w->account.input_count = w->plan.input_count; /* also when a failure came before they were counted */
	report.exit_code = code;
	report.sealed = w->sealed;
	report.elapsed_ns = command_clock_ns() - w->start_ns;
	/* A refusal is one line. */
	return w->began && code != EXIT_USAGE ? command_finish(&report, w->report_path) : code;
}

static int run(const struct cli_args *args, bool plan_only)
{
	struct images w = {.o = args->options, .start_ns = command_clock_ns(), .job.source_fd = -1};
	int code;

	w.job.plan = &w.plan;
	w.job.account = &w.account;
	w.job.source = w.o->source;
	w.job.worker_count = command_threads(w.o->jobs);
	code = settle_recipe(&w, args);
	if (code == EXIT_DONE)
		code = settle_places(&w);
	if (code == EXIT_DONE)
		code = run_with_places(&w, args, plan_only);
	if (w.job.source_fd >= 0)
		close(w.job.source_fd);
	plan_free(&w.plan);
	scan_free(&w.scan);
	account_free(&w.account);
	quarantine_close(&w.quarantine);
	free(w.source);
	free(w.out);
	free(w.report_path);
	free(w.work_dir);
	return code;
}

int images_run(const struct cli_args *args)
{
	return run(args, false);
}

int images_plan_run(const struct cli_args *args)
{
	return run(args, true);
}
