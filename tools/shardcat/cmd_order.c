/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_order.c - shardcat order: which records a rank gets in an epoch, in which order
 *
 * The numbers are the loader's own, asked for without reading a record.  What is still to come from
 * a token on is an epoch entered in its middle: which positions a rank takes then is part 7 of
 * format/ORDER.md.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"
#include "tools/common/memory.h"
#include "tools/common/signals.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/shardcat.h"

#define ROWS_AT_A_TIME 16384

/* ---- options of all verbs about an order ---- */

/* The choices of --shuffle, in their order. */
static_assert(SHARD_SHUFFLE_BY_SIZE == 0 && SHARD_SEQUENTIAL == 1 && SHARD_SHUFFLE_GLOBAL == 2 &&
		      SHARD_SHUFFLE_WINDOWS == 3,
	      "choices are values of enum shard_shuffle");

/* clang-format off */
const struct cli_option order_option_table[] = {
	{.name = "seed",
	 .kind = CLI_U64,
	 .arg_name = "S",
	 .offset = offsetof(struct order_options, seed),
	 .default_value = "0",
	 .help = "seed of the order"},
	{.name = "shuffle",
	 .kind = CLI_CHOICE,
	 .arg_name = "KIND",
	 .choices = "by-size|sequential|global|windows",
	 .offset = offsetof(struct order_options, shuffle),
	 .default_value = "by-size",
	 .help = "order of the records"},
	{.name = "run-records",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .offset = offsetof(struct order_options, run_records),
	 .default_note = "by size",
	 .help = "in windows: number of records in a run"},
	{.name = "phase-unit",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .offset = offsetof(struct order_options, phase_unit_records),
	 .default_note = "by size",
	 .help = "in windows: shift runs by multiples of N records"},
	{.name = "window-runs",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct order_options, window_runs),
	 .default_note = "the loader's",
	 .help = "in windows: number of runs that are shuffled together in a lane"},
	{.name = "lanes",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct order_options, lane_count),
	 .default_note = "the loader's",
	 .help = "in windows: number of independent streams of runs"},
	{0},
};
/* clang-format on */

struct shard_loader_options order_loader_options(const struct order_options *o)
{
	return (struct shard_loader_options){
		.size = sizeof(struct shard_loader_options),
		.order = {.seed = o->seed,
			  .shuffle = (uint32_t)o->shuffle,
			  .window_runs = (uint32_t)o->window_runs,
			  .lane_count = (uint32_t)o->lane_count,
			  .run_records = o->run_records,
			  .phase_unit_records = o->phase_unit_records},
	};
}

int order_options_check(const struct cli_args *args, const struct order_options *o)
{
	static const char *const of_windows[] = {"run-records", "phase-unit", "window-runs", "lanes"};

	if (o->shuffle != SHARD_SEQUENTIAL && o->shuffle != SHARD_SHUFFLE_GLOBAL)
		return EXIT_DONE;
	for (unsigned i = 0; i < sizeof(of_windows) / sizeof(of_windows[0]); i++)
		if (cli_given(args, of_windows[i]))
			return cli_misuse(args, "--%s needs --shuffle windows, not %s", of_windows[i],
					  o->shuffle == SHARD_SEQUENTIAL ? "sequential" : "global");
	return EXIT_DONE;
}

/* ---- the order that they describe ---- */

struct print_options {
	struct order_options order; /* first: see shardcat.h */
	const char *path, *token, *select;
	uint64_t epoch, rank, world, batch;
	int tail; /* enum shard_tail */
};

static int print_order(const struct shard_loader *loader, uint64_t epoch, uint64_t row_count,
		       uint64_t idx[ROWS_AT_A_TIME])
{
	struct shard_error err;

	for (uint64_t first = 0; first < row_count && !ferror(stdout);) {
		uint64_t now = row_count - first < ROWS_AT_A_TIME ? row_count - first : ROWS_AT_A_TIME;

		if (shard_loader_order(loader, epoch, first, now, NULL, idx, &err))
			return fail_of_library(&err);
		for (uint64_t i = 0; i < now; i++)
			printf("%" PRIu64 "\n", idx[i]);
		first += now;
		if (interrupted())
			return EXIT_INTERRUPTED;
	}
	return EXIT_DONE;
}

/* What the rank gets from a position on; `whole` is a loader of one rank that gets all records. */
static int print_rest(const struct print_options *o, const struct shard_loader *whole, uint64_t epoch,
		      uint64_t record_count, uint64_t position, uint64_t idx[ROWS_AT_A_TIME])
{
	uint64_t left = record_count - position, step = o->world * o->batch, first = 0, count = 0; /* of idx */
	uint64_t rows = o->tail == SHARD_KEEP  ? left
			: o->tail == SHARD_PAD ? (left / step + (left % step > 0)) * o->batch
					       : left / step * o->batch;
	uint64_t at = position + (o->rank + o->world - position % o->world) % o->world;
	struct shard_error err;

	for (uint64_t i = 0; i < rows && !ferror(stdout); i++, at += o->world) {
		uint64_t here = at % record_count;

		if (here < first || here - first >= count) {
			first = here;
			count = record_count - here < ROWS_AT_A_TIME ? record_count - here : ROWS_AT_A_TIME;
			if (shard_loader_order(whole, epoch, first, count, NULL, idx, &err))
				return fail_of_library(&err);
		}
		printf("%" PRIu64 "\n", idx[here - first]);
		if (interrupted())
			return EXIT_INTERRUPTED;
	}
	return EXIT_DONE;
}

/* What the library says of the options of a loader, in the words of this verb. */
static int fail_in_words(const struct shard_error *err)
{
	static const struct {
		const char *said, *here;
	} words[] = {
		{"SHARD_DROP", "--tail drop"},
		{"SHARD_PAD", "--tail pad"},
		{"SHARD_KEEP", "--tail keep"},
		{"leave shuffle, runs, windows and lanes at 0", "leave out --shuffle and the options of windows"},
	};
	char text[2 * sizeof(err->message)];
	const char *at = err->message;
	size_t bytes = 0;

	if (!strncmp(at, "options: ", 9))
		at += 9;
	while (*at && bytes + 64 < sizeof(text)) {
		const char *put = NULL;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !put; i++)
			if (!strncmp(at, words[i].said, strlen(words[i].said))) {
				put = words[i].here;
				at += strlen(words[i].said);
			}
		if (put)
			bytes += (size_t)snprintf(text + bytes, sizeof(text) - bytes, "%s", put);
		else
			text[bytes++] = *at++;
	}
	text[bytes] = 0;
	return fail(exit_code_of_status(err->status), "%s", text);
}

static int open_loaders(const struct print_options *o, bool seed_given, struct input *in,
			const struct shard_selection *selection, struct shard_loader **loader,
			struct shard_loader **whole)
{
	struct shard_loader_options options = order_loader_options(&o->order);
	const char *seed = o->token && !seed_given ? strstr(o->token, " seed ") : NULL;
	struct shard_error err;
	int rc;

	options.selection = selection;
	/* So that nobody needs to repeat them.  A loader whose order is left open takes any other one. */
	if (seed)
		options.order.seed = strtoull(seed + 6, NULL, 10);
	if (o->token && options.order.shuffle == SHARD_SHUFFLE_BY_SIZE && strstr(o->token, " sequential "))
		options.order.shuffle = SHARD_SEQUENTIAL;
	options.batch_records = (uint32_t)o->batch;
	options.rank = (uint32_t)o->rank;
	options.world = (uint32_t)o->world;
	options.tail = (uint32_t)o->tail;
	rc = shard_loader_open(loader, in->dataset, &options, &err);
	if (!rc && o->token)
		rc = shard_loader_resume(*loader, o->token, &err);
	if (!rc && o->token) {
		options.batch_records = 1;
		options.rank = 0;
		options.world = 1;
		options.tail = SHARD_KEEP;
		rc = shard_loader_open(whole, in->dataset, &options, &err);
		if (!rc)
			rc = shard_loader_resume(*whole, o->token, &err);
	}
	return rc ? fail_in_words(&err) : EXIT_DONE;
}

#define ORDER_TEXT_CHARS 256

/* "windows of 40 runs of 128 records, 64 lanes, phase unit 1, seed 7" */
static const char *order_text(char out[ORDER_TEXT_CHARS], const struct shard_order_info *info)
{
	switch (info->kind) {
	case SHARD_SEQUENTIAL:
		snprintf(out, ORDER_TEXT_CHARS, "sequential");
		break;
	case SHARD_SHUFFLE_GLOBAL:
		snprintf(out, ORDER_TEXT_CHARS, "global, seed %" PRIu64, info->seed);
		break;
	default:
		snprintf(out, ORDER_TEXT_CHARS,
			 "windows of %" PRIu32 " runs of %" PRIu64 " records, %" PRIu32 " lane%s, phase unit %" PRIu64
			 ", seed %" PRIu64,
			 info->window_runs, info->run_records, info->lane_count, info->lane_count == 1 ? "" : "s",
			 info->phase_unit_records, info->seed);
	}
	return out;
}

static int print(const struct print_options *o, const struct shard_loader *loader, const struct shard_loader *whole)
{
	uint64_t *idx = xmalloc(ROWS_AT_A_TIME, sizeof(*idx)), epoch = o->epoch, position = 0;
	struct shard_order_info info;
	char text[ORDER_TEXT_CHARS];
	int rc;

	if (whole) /* not the other one's: its epoch may have no further step */
		shard_loader_tell(whole, &epoch, &position);
	shard_loader_order_info(loader, &info);
	detail("order: %s; epoch %" PRIu64 " from position %" PRIu64 " of %" PRIu64, order_text(text, &info), epoch,
	       position, info.record_count);
	if (whole)
		rc = print_rest(o, whole, epoch, info.record_count, position, idx);
	else if (o->tail == SHARD_KEEP) /* its last batch is short */
		rc = print_order(loader, epoch, info.record_count, idx);
	else
		rc = print_order(loader, epoch, shard_loader_step_count(loader) * o->batch, idx);
	free(idx);
	return rc;
}

static int run(const struct cli_args *args)
{
	const struct print_options *o = args->options;
	struct shard_loader *loader = NULL, *whole = NULL;
	struct shard_selection *selection = NULL;
	struct input in;
	int rc;

	if (o->rank >= o->world)
		return cli_misuse(args, "--rank %" PRIu64 ": must be below --world %" PRIu64, o->rank, o->world);
	if (o->token && cli_given(args, "epoch"))
		return cli_misuse(args, "--epoch and --token exclude each other: a token holds its epoch");
	rc = order_options_check(args, &o->order);
	if (rc)
		return rc;
	rc = input_open_dataset(&in, o->path);
	if (!rc && !in.record_count && o->token)
		rc = fail(EXIT_MISMATCH, "%s: has no records, so the token belongs to another dataset", o->path);
	if (!rc)
		rc = input_selection(&in, o->select, &selection);
	if (!rc && in.record_count) /* an epoch of no records has an order, which is empty, though no loader */
		rc = open_loaders(o, cli_given(args, "seed"), &in, selection, &loader, &whole);
	if (!rc && loader)
		rc = print(o, loader, whole);
	shard_loader_close(whole);
	shard_loader_close(loader);
	shard_selection_close(selection);
	input_close(&in);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {ONLY_DIR(struct print_options), {0}};

static const struct cli_option options[] = {
	{.name = "epoch",
	 .kind = CLI_U64,
	 .arg_name = "E",
	 .offset = offsetof(struct print_options, epoch),
	 .default_value = "0",
	 .help = "number of the epoch; the first one is 0"},
	{.name = "token",
	 .kind = CLI_STRING,
	 .arg_name = "TOKEN",
	 .offset = offsetof(struct print_options, token),
	 .help = "print the records that a loader with this token still has to deliver"},
	SELECT_OPTION(struct print_options),
	{.name = "rank",
	 .kind = CLI_U64,
	 .arg_name = "Q",
	 .max = UINT32_MAX,
	 .offset = offsetof(struct print_options, rank),
	 .default_value = "0",
	 .help = "rank whose records are printed; the first one is 0"},
	{.name = "world",
	 .kind = CLI_U64,
	 .arg_name = "R",
	 .min = 1,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct print_options, world),
	 .default_value = "1",
	 .help = "number of ranks"},
	{.name = "batch",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct print_options, batch),
	 .default_value = "1",
	 .help = "number of records in each batch of a rank"},
	{.name = "tail",
	 .kind = CLI_CHOICE,
	 .choices = "drop|pad|keep",
	 .offset = offsetof(struct print_options, tail),
	 .default_value = "drop",
	 .help = "what to do with an incomplete last batch"},
	{0},
};
/* clang-format on */

const struct cli_verb verb_order = {
	.name = "order",
	.positionals = positionals,
	.options = {order_option_table, options},
	.options_bytes = sizeof(struct print_options),
	.run = run,
};
