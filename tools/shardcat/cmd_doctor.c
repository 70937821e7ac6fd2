/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_doctor.c - shardcat doctor: what this machine has for a loader to use, and what could be
 * better
 *
 * The room doctor/ looks and finds the words; this sets them on a screen.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/common/json_out.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/doctor/doctor.h"
#include "tools/shardcat/shardcat.h"

#define VERDICT_COLUMNS 9
#define TEXT_COLUMN	24
#define LINE_BYTES	4096

#define MUCH_READ 1.5 /* times what is delivered: from here on, it counts as slower */

struct doctor_options {
	const char *path, *select;
	bool json;
};

struct talk {
	struct json_out json;
	bool is_json;
	uint64_t count[VERDICTS + 1]; /* of each verdict, and of all */
};

static const char *const verdict_names[VERDICTS] = {"good", "slower", "missing", "unknown"};

/* From TEXT_COLUMN on. */
static void print_text(const char *before, const char *text)
{
	char line[LINE_BYTES];
	size_t used = (size_t)snprintf(line, sizeof(line), "%s", before);

	escape_text(line + used, sizeof(line) - used, text, strlen(text), ESCAPE_TALK);
	wrap(stdout, line, TEXT_COLUMN, TEXT_COLUMN + used);
}

/* -q leaves out what is good. */
static void print_finding(const struct finding *f)
{
	if (f->verdict == VERDICT_GOOD && !message_shows(MESSAGE_NORMAL))
		return;
	printf("%-*s%-*s", VERDICT_COLUMNS, verdict_names[f->verdict], TEXT_COLUMN - VERDICT_COLUMNS, f->name);
	print_text("", f->found);
	if (f->so[0]) {
		printf("%*s", TEXT_COLUMN, "");
		print_text("so: ", f->so);
	}
	if (f->advice[0]) {
		printf("%*s", TEXT_COLUMN, "");
		print_text("do: ", f->advice);
	}
}

static void json_finding(struct json_out *j, const struct finding *f)
{
	json_out_object(j, NULL);
	json_out_string(j, "name", f->name);
	json_out_string(j, "verdict", verdict_names[f->verdict]);
	json_out_string(j, "found", f->found);
	json_out_string(j, "so", f->so);
	json_out_string(j, "advice", f->advice);
	json_out_object_line(j, "facts");
	for (uint32_t i = 0; i < f->fact_count; i++)
		if (f->fact[i].text)
			json_out_string(j, f->fact[i].name, f->fact[i].text);
		else
			json_out_u64(j, f->fact[i].name, f->fact[i].number);
	json_out_end(j);
	json_out_end(j);
}

static void on_finding(void *context, const struct finding *f)
{
	struct talk *t = context;

	t->count[f->verdict]++;
	t->count[VERDICTS]++;
	if (t->is_json)
		json_finding(&t->json, f);
	else
		print_finding(f);
}

/* What a selection costs: a loader reads whole units and chunks. */
static void look_at_selection(struct talk *t, const struct input *target, const struct shard_selection *s)
{
	struct finding f = {.name = "selection", .verdict = VERDICT_GOOD};
	double times = shard_selection_amplification(s, target->dataset);
	struct shard_selection_info info;

	shard_selection_info(s, &info);
	finding_set(f.found, "%" PRIu64 " of %" PRIu64 " records; a loader reads %.3g times what it delivers",
		    info.record_count, info.of_count, times);
	finding_number(&f, "records", info.record_count);
	finding_number(&f, "of", info.of_count);
	finding_number(&f, "read_thousandths", (uint64_t)(times * 1000 + 0.5));
	if (times >= MUCH_READ) {
		f.verdict = VERDICT_SLOWER;
		finding_set(f.so, "small records are hashed, and compressed ones decoded, several at a time: for one "
				  "that is selected, all of these are read");
		finding_set(f.advice, "if the files are not in memory, pack these records as a dataset of their own");
	}
	on_finding(t, &f);
}

/* `selection` may be NULL. */
static int examine(const struct doctor_options *o, const struct input *target, const struct shard_selection *selection)
{
	struct talk t = {.is_json = o->json};
	const struct doctor doctor = {.path = o->path, .context = &t, .tell = on_finding};
	struct shard_error err;
	int rc;

	if (t.is_json) {
		json_out_start(&t.json, stdout);
		json_out_object(&t.json, NULL);
		json_out_array(&t.json, "findings");
	}
	rc = doctor_look(&doctor, &err);
	if (!rc && selection)
		look_at_selection(&t, target, selection);
	if (t.is_json) {
		json_out_end(&t.json);
		json_out_end(&t.json);
		json_out_finish(&t.json);
	}
	if (rc)
		return fail_of_library(&err);
	if (!o->path)
		note("no disk was examined; name a dataset, or a folder on the disk that will hold one");
	note("%" PRIu64 " findings: %" PRIu64 " good, %" PRIu64 " slower, %" PRIu64 " missing, %" PRIu64 " unknown",
	     t.count[VERDICTS], t.count[VERDICT_GOOD], t.count[VERDICT_SLOWER], t.count[VERDICT_MISSING],
	     t.count[VERDICT_UNKNOWN]);
	return EXIT_DONE;
}

static int run(const struct cli_args *args)
{
	const struct doctor_options *o = args->options;
	struct shard_selection *selection = NULL;
	struct input target = {.path = o->path};
	int rc = EXIT_DONE;

	if (o->select && !o->path)
		return cli_misuse(args, "--select %s: of which dataset? name its folder, too", o->select);
	if (o->select)
		rc = input_open_dataset(&target, o->path);
	if (!rc)
		rc = input_selection(&target, o->select, &selection);
	if (!rc)
		rc = examine(o, &target, selection);
	shard_selection_close(selection);
	input_close(&target);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {
	{.name = "PATH",
	 .kind = CLI_FILE,
	 .offset = offsetof(struct doctor_options, path),
	 .help = "dataset, or any file or folder on the disk that is examined"},
	{0},
};

static const struct cli_option options[] = {
	SELECT_OPTION(struct doctor_options),
	AS_JSON(struct doctor_options, "print one JSON document"),
	{0},
};
/* clang-format on */

const struct cli_verb verb_doctor = {
	.name = "doctor",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct doctor_options),
	.run = run,
};
