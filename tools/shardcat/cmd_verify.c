/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_verify.c - shardcat verify: is every byte as the format and the manifest say?
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/common/human.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/shardcat.h"

#define MIB (UINT64_C(1) << 20)

struct verify_options {
	const char *path;
	uint64_t sample, threads;
	bool sha256;
	const char *id;
};

struct watch {
	struct progress progress; /* counts MiB */
	bool started;
	uint64_t printed; /* problems */
};

static int on_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
	struct watch *w = context;
	uint64_t done = done_bytes / MIB;

	if (!w->started)
		progress_start(&w->progress, "verifying", "MiB", (total_bytes + MIB - 1) / MIB);
	w->started = true;
	if (done > w->progress.count)
		progress_add(&w->progress, done - w->progress.count, 0, 0);
	progress_tick(&w->progress);
	return interrupted();
}

static void on_problem(void *context, const struct shard_error *problem)
{
	struct watch *w = context;

	w->printed++;
	fail_of_library(problem);
}

static void print_verdict(const struct input *in, const struct verify_options *o,
			  const struct shard_verify_report *report)
{
	char shards[HUMAN_CHARS], records[HUMAN_CHARS], units[HUMAN_CHARS], bytes[HUMAN_CHARS];
	double seconds = (double)(report->elapsed_ns ? report->elapsed_ns : 1) / 1e9;

	printf("ok: %s shard%s, ", human_count(shards, report->shard_count), report->shard_count == 1 ? "" : "s");
	if (o->sample)
		printf("structure and a sample of %s units", human_count(units, report->unit_count));
	else
		printf("%s record%s", human_count(records, report->record_count), report->record_count == 1 ? "" : "s");
	printf(", %s in %.2f s (%.2f GB/s)\n", human_bytes(bytes, report->bytes), seconds,
	       (double)report->bytes / seconds / 1e9);
	if (in->dataset && !o->sha256)
		puts("SHA-256 of the shard files was not checked; use --sha256, for example after a download");
}

static int verify(struct input *in, const struct verify_options *o)
{
	struct watch watch = {.printed = 0};
	const struct shard_verify_options options = {
		.size = sizeof(options),
		.sample_units = o->sample,
		.thread_count = (uint32_t)o->threads,
		.sha256 = o->sha256,
		.context = &watch,
		.progress = on_progress,
		.problem = on_problem,
	};
	struct shard_verify_report report = {0};
	struct shard_error err;
	int rc;

	if (in->dataset)
		rc = shard_dataset_verify(in->dataset, &options, &report, &err);
	else
		rc = shard_reader_verify(in->reader, &options, &report, &err);
	if (watch.started)
		progress_abandon(&watch.progress);
	if (rc == SHARD_E_CANCELLED && interrupted())
		return fail(EXIT_INTERRUPTED, "%s: interrupted; found %" PRIu64 " problem%s before", in->path,
			    watch.printed, watch.printed == 1 ? "" : "s");
	if (rc && !watch.printed)
		return fail_of_library(&err);
	if (rc && watch.printed > 1)
		return fail(exit_code_of_status(rc), "%s: %" PRIu64 " problems", in->path, watch.printed);
	if (!rc && message_shows(MESSAGE_NORMAL))
		print_verdict(in, o, &report);
	return exit_code_of_status(rc);
}

static int run(const struct cli_args *args)
{
	const struct verify_options *o = args->options;
	struct input in = {0};
	int rc = EXIT_DONE;

	if (o->id && (strlen(o->id) != 64 || strspn(o->id, "0123456789abcdefABCDEF") != 64))
		return cli_misuse(args, "--id %s: an id has 64 hex digits", o->id);
	rc = input_open_id(&in, o->path, o->id);
	if (!rc && o->id && !in.dataset)
		rc = cli_misuse(args, "--id needs a dataset: a shard on its own has no id");
	if (!rc && o->sha256 && !in.dataset)
		rc = cli_misuse(args, "--sha256 needs a dataset: only a manifest records the SHA-256 of shard files");
	if (!rc)
		rc = verify(&in, o);
	input_close(&in);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {DIR_OR_SHARD(struct verify_options), {0}};

static const struct cli_option options[] = {
	{.name = "sample",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .offset = offsetof(struct verify_options, sample),
	 .default_note = "everything",
	 .help = "check the structure, but of the data only N evenly spread units"},
	{.name = "threads",
	 .short_name = 'j',
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = 1024,
	 .offset = offsetof(struct verify_options, threads),
	 .default_note = "one per CPU",
	 .help = "number of threads"},
	{.name = "sha256",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct verify_options, sha256),
	 .help = "compare the SHA-256 of each shard file too, for example after a download"},
	{.name = "id",
	 .kind = CLI_STRING,
	 .arg_name = "HEX",
	 .offset = offsetof(struct verify_options, id),
	 .default_note = "any",
	 .help = "fail if the dataset does not have this id, which somebody you trust told you"},
	{0},
};
/* clang-format on */

const struct cli_verb verb_verify = {
	.name = "verify",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct verify_options),
	.run = run,
};
