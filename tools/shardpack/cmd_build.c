/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_build.c - `shardpack build` and `shardpack seal`: what `shardpack plan` began
 */
#include "tools/shardpack/shardpack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "shard.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/make/make.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/report/report.h"

struct build_options {
	const char *out;
	const char *source, *spool;
	struct cli_part part;
	uint64_t jobs;
	int read_back; /* 0: yes */
	struct cli_amount max_bad;
	const char *report;
	bool verify, trust_names, again, sandbox, steal, no_wait, grace;
	int on_error; /* 1: leave out files that are gone */
};

#define AT(member) .offset = offsetof(struct build_options, member)

/* clang-format off */
static const struct cli_option out_positional[] = {
	{.name = "DIR", .kind = CLI_DIR, .required = true, AT(out), .help = "folder that was given to `shardpack plan`"}, {0}};

static const struct cli_option source_options[] = {
	{.name = "source", .kind = CLI_DIR, AT(source), .arg_name = "SRC", .default_note = "from the plan",
	 .help = "folder of the inputs, if they have moved"},
	{.name = "trust-names", .kind = CLI_FLAG, AT(trust_names),
	 .help = "go on even if source files have other times than in the plan"},
	{0}};

static const struct cli_option build_options[] = {
	{.name = "part", .kind = CLI_PART, AT(part), .arg_name = "k/n", .default_note = "all shards",
	 .help = "build every n-th shard, beginning with number k, which is 0 to n-1"},
	{.name = "steal", .kind = CLI_FLAG, AT(steal), .help = "share the work with other processes: claim missing shards until none is left"},
	{.name = "no-wait", .kind = CLI_FLAG, AT(no_wait), .help = "do not wait for shards that other processes have claimed"},
	{.name = "grace", .kind = CLI_FLAG, AT(grace), .help = "at SIGTERM finish the current shard, then exit with 75; SIGUSR1 always does so"},
	{.name = "read-back", .kind = CLI_CHOICE, AT(read_back), .choices = "yes|no", .default_value = "yes",
	 .help = "read each shard back from the disk and verify it"},
	{.name = "max-bad", .kind = CLI_COUNT_OR_PERCENT, AT(max_bad), .arg_name = "N|P%", .default_note = "no limit",
	 .help = "stop if more than N inputs, or P percent of them, are bad"},
	{.name = "on-error", .kind = CLI_CHOICE, AT(on_error), .arg_name = "HOW", .choices = "fail|skip",
	 .default_value = "fail", .help = "what to do if a file is gone that was there for the plan"},
	{.name = "sandbox", .kind = CLI_FLAG, AT(sandbox), .help = "decode images in processes that can open no files"},
	{.name = "again", .kind = CLI_FLAG, AT(again), .help = "build finished shards once more, compare the bytes, and change none"},
	{0}};

static const struct cli_option seal_options[] = {
	{.name = "verify", .kind = CLI_FLAG, AT(verify), .help = "read and verify every shard, not only those that look changed"},
	{0}};

static const struct cli_option common_options[] = {
	{.name = "spool", .kind = CLI_DIR, AT(spool), .arg_name = "DIR", .default_note = "beside DIR",
	 .help = "folder for temporary files"},
	{.name = "jobs", .short_name = 'j', .kind = CLI_U64, AT(jobs), .arg_name = "N", .min = 1, .max = 1024,
	 .default_note = "one per CPU", .help = "number of threads that compute at once"},
	{.name = "report", .kind = CLI_FILE, AT(report), .arg_name = "FILE",
	 .help = "write a report: JSON, or HTML if FILE ends in .html"},
	{0}};
/* clang-format on */

struct planned {
	struct job job;
	struct source_root root;
	struct source_files *source_files;
	struct source_times times;
	struct plan plan;
	struct account account;
	struct receipt_files receipts;
	struct scheduler worker;
	char *source, *quarantine_said, *quarantine, *report_path, *remedy;
	bool sealed; /* long ago: there is nothing to do */
};

/* Where the report goes. */
static int settle_report(struct planned *s, const struct build_options *o)
{
	char *out = files_absolute(o->out);
	int rc = out ? EXIT_DONE : EXIT_IO;

	if (rc == EXIT_DONE && o->report) {
		s->report_path = files_absolute(o->report);
		rc = s->report_path ? command_keep_apart("--report", s->report_path, "DIR", out) : EXIT_IO;
	}
	free(out);
	return rc == EXIT_DONE && o->report ? command_check_report(s->report_path) : rc;
}

/* The folder of the inputs, and the plan's files in it. */
static int open_source(struct planned *s, const struct build_options *o)
{
	struct source_words words = {s->job.source, "the plan", s->job.remedy};
	int rc = source_root_open_folder(&s->root, s->job.source);

	s->job.source_fd = s->root.fd;
	if (!o->trust_names) {
		s->job.times = &s->times;
		rc = rc == EXIT_DONE ? output_open_times(&s->job, &s->times) : rc;
	}
	if (rc != EXIT_DONE || !s->plan.file_count)
		return rc;
	s->job.source_files = s->source_files = source_files_open(&s->root, o->spool ? o->spool : o->out, NULL);
	rc = source_files_attach(s->source_files, &s->plan, s->job.remedy);
	if (rc == EXIT_DONE && !o->trust_names)
		rc = source_times_compare_files(&s->times, s->source_files, &s->plan, &words);
	return rc == EXIT_DONE ? token_windows_again(s->source_files, &s->plan, s->job.remedy) : rc;
}

/* The plan in OUT, and all that it implies. */
static int open_planned(struct planned *s, const struct build_options *o, bool needs_source)
{
	struct shard_error err;
	int rc = settle_report(s, o);

	s->job.plan = &s->plan;
	command_begin_build(&s->job, &s->account, &s->receipts);
	s->remedy = command_plan_again(o->out);
	s->job.remedy = s->remedy;
	if (o->jobs)
		s->job.worker_count = (unsigned)o->jobs;
	if (rc == EXIT_DONE)
		rc = output_set_dir(&s->job, o->out);
	command_open_shelf(&s->plan, o->spool ? o->spool : o->out);
	if (rc == EXIT_DONE)
		rc = output_load(&s->job, &s->plan, &s->source, &s->quarantine_said, &s->sealed);
	if (rc == EXIT_DONE && s->sealed && o->again)
		return fail(
			EXIT_USAGE,
			"%s: is sealed and has no plan any more, so --again cannot build its shards; to compare, pack "
			"the sources into another folder: the id must be the same",
			o->out);
	if (rc == EXIT_DONE && s->sealed) {
		note("%s: sealed already; nothing to do%s", o->out, o->report ? ", and nothing to report" : "");
		/* A seal that was killed may have left some of .shardpack, but not the plan. */
		return access(s->job.state_dir, F_OK) == 0 ? output_clear_state(&s->job) : EXIT_DONE;
	}
	if (rc == EXIT_DONE && recipe_schema(&s->plan.recipe, &s->job.schema, &err) != SHARD_OK)
		rc = fail(exit_code_of_status(err.status), "%s/plan: %s", s->job.state_dir, err.message);
	if (rc == EXIT_DONE && s->plan.recipe.on_error == ON_ERROR_QUARANTINE) {
		if (!s->quarantine_said)
			return fail(EXIT_USAGE,
				    "%s: the file `quarantine` is missing; run the same `shardpack plan` "
				    "command again to restore it",
				    s->job.state_dir);
		rc = quarantine_open(&s->quarantine, s->quarantine_said, &s->plan);
		s->job.quarantine = s->quarantine;
	}
	s->job.source = o->source ? o->source : s->source ? s->source : "";
	if (rc != EXIT_DONE || (!needs_source && !s->job.source[0]))
		return rc;
	if (!s->job.source[0])
		return fail(EXIT_USAGE, "%s: the file `source` is missing; name the source with --source SRC",
			    s->job.state_dir);
	return needs_source ? open_source(s, o) : rc;
}

static void close_planned(struct planned *s)
{
	command_end_build(&s->job);
	source_times_close(&s->times);
	source_files_close(s->source_files);
	source_root_close(&s->root);
	plan_free(&s->plan);
	account_free(&s->account);
	free(s->quarantine);
	free(s->source);
	free(s->quarantine_said);
	free(s->report_path);
	free(s->remedy);
}

/* The plan was removed, so what was sealed is compared with its manifest. */
static int verify_sealed(const char *dir)
{
	struct shard_verify_options opt = {.size = sizeof(opt), .sha256 = 1};
	struct shard_verify_report report;
	struct shard_dataset *ds;
	struct shard_error err;
	int rc = shard_dataset_open(&ds, dir, NULL, &err);

	if (rc == SHARD_OK) {
		rc = shard_dataset_verify(ds, &opt, &report, &err);
		shard_dataset_close(ds);
	}
	if (rc != SHARD_OK)
		return fail_of_library(&err);
	note("%s: %" PRIu64 " shard%s verified", dir, report.shard_count, report.shard_count == 1 ? "" : "s");
	return EXIT_DONE;
}

/* Which shards this process builds: a part; or what it claims, which a job array does by itself. */
static int choose_shards(struct planned *s, const struct build_options *o)
{
	struct scheduler *w = &s->worker;
	int rc = EXIT_DONE;

	if (!o->part.count)
		rc = scheduler_find(w, getenv);
	else if (o->steal)
		*w = (struct scheduler){.found = true, .number = o->part.idx, .count = o->part.count};
	if (rc != EXIT_DONE)
		return rc;
	if (o->steal && !w->found)
		scheduler_anywhere(w, clock_now_ns());
	if (w->found && o->again)
		return fail(EXIT_USAGE,
			    "--again compares shards that are there, and claims are for missing ones; "
			    "%s",
			    o->steal ? "give it without --steal" : "say with --part k/n which ones to compare");
	if (!w->found && o->no_wait)
		return fail(EXIT_USAGE, "--no-wait is for shards that others have claimed; give it with --steal, or in "
					"a job array without --part");
	s->job.part = w->found ? (struct cli_part){0} : o->part;
	s->job.worker = w->found ? w : NULL;
	s->job.no_wait = o->no_wait;
	if (w->words[0])
		note("this worker is %s; it claims shards that are missing", w->words);
	return EXIT_DONE;
}

static int build(const struct cli_args *args)
{
	const struct build_options *o = args->options;
	struct planned s = {.root.fd = -1};
	struct report report = {.job = &s.job};
	uint64_t start_ns = clock_now_ns();
	int rc;

	signals_grace(o->grace);
	rc = open_planned(&s, o, true);

	if (rc == EXIT_DONE && o->again && o->read_back)
		rc = fail(EXIT_USAGE, "--again compares every byte of the shards, so it cannot be given with "
				      "--read-back no");
	if (rc == EXIT_DONE && !s.sealed)
		rc = choose_shards(&s, o);
	if (rc == EXIT_DONE && !s.sealed) {
		s.job.again = o->again;
		s.job.leave_vanished = o->on_error == 1;
		s.job.max_bad = cli_given(args, "max-bad") ? &o->max_bad : NULL;
		s.job.read_back = o->read_back == 0;
		report.exit_code = command_build(&s.job, o->sandbox);
		report.elapsed_ns = clock_now_ns() - start_ns;
		rc = command_finish(&report, s.report_path);
	}
	close_planned(&s);
	return rc;
}

static int seal(const struct cli_args *args)
{
	const struct build_options *o = args->options;
	struct planned s = {.root.fd = -1};
	struct report report = {.job = &s.job};
	uint64_t start_ns = clock_now_ns();
	int rc = open_planned(&s, o, false);

	if (rc == EXIT_DONE && !s.sealed) {
		s.job.verify_all = o->verify;
		report.exit_code = seal_run(&s.job);
		report.sealed = report.exit_code == EXIT_DONE;
		report.elapsed_ns = clock_now_ns() - start_ns;
		rc = command_finish(&report, s.report_path);
	} else if (rc == EXIT_DONE && o->verify) {
		rc = verify_sealed(o->out);
	}
	close_planned(&s);
	return rc;
}

const struct cli_verb cmd_build = {
	.name = "build",
	.positionals = out_positional,
	.options = {source_options, build_options, common_options},
	.options_bytes = sizeof(struct build_options),
	.run = build,
};

const struct cli_verb cmd_seal = {
	.name = "seal",
	.positionals = out_positional,
	.options = {seal_options, common_options},
	.options_bytes = sizeof(struct build_options),
	.run = seal,
};
