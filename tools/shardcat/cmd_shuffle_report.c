/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_shuffle_report.c - shardcat shuffle-report: are batches mixed as well as a uniform shuffle
 * would mix them?
 *
 * Asks a loader for its order and reads the labels, nothing else.  The statistics are mixing.c's;
 * here they become a table, a verdict, and advice.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/human.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardcat/dataset/target.h"
#include "tools/shardcat/prove/prove.h"
#include "tools/shardcat/shardcat.h"

#define BATCH_DEFAULT	 256
#define ORDER_RECORDS	 65536 /* asked for at a time, about */
#define SURE_ERRORS	 4.0   /* standard errors: chance does that once in 16,000 */
#define SMALL_DIFFERENCE 0.01  /* too small to matter, however sure */
#define VARIANCE_LIMIT	 1.1   /* above it there is a warning */

struct report_options {
	struct order_options order; /* first: see order_options.c */
	const char *path, *field, *mix, *select;
	uint64_t batch, epochs;
};

struct study {
	const struct report_options *o;
	struct target t;
	const struct shard_field *label; /* NULL: there is none */
	struct mixing_data data;
	struct classes classes;
	struct shard_selection *selection; /* NULL: all records */
	uint64_t *record;		   /* of each place in the selection; the report studies places */
	uint64_t *shard_first;
	struct shard_loader *loader;
	struct shard_order_info order;
	struct progress progress;
};

static int take_classes(struct study *s)
{
	int rc = classes_take(&s->classes, &s->t, s->label, s->record, s->data.record_count, &s->progress);

	s->data.class_of = s->classes.class_of;
	s->data.class_records = s->classes.class_records;
	s->data.class_count = s->classes.class_count;
	return rc;
}

/* ---- a selection ---- */

/* The place of a record in the selection; or, if it is not in it, of the next one. */
static uint64_t place_of(const struct study *s, uint64_t record)
{
	uint64_t first = 0, end = s->data.record_count;

	while (s->record && first < end) {
		uint64_t middle = first + (end - first) / 2;

		if (s->record[middle] < record)
			first = middle + 1;
		else
			end = middle;
	}
	return s->record ? first : record;
}

static int take_selection(struct study *s)
{
	struct shard_selection_info info;
	struct shard_error err;
	int rc = target_selection(&s->t, s->o->select, &s->selection);

	s->data.record_count = s->t.record_count;
	if (rc || !s->selection)
		return rc;
	shard_selection_info(s->selection, &info);
	s->data.record_count = info.record_count;
	s->record = malloc((size_t)info.record_count * sizeof(*s->record));
	if (!s->record)
		return classes_no_memory(&s->t);
	rc = shard_selection_records(s->selection, 0, info.record_count, s->record, &err);
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

/* ---- the order ---- */

static int take_shards(struct study *s)
{
	struct shard_dataset_info info;
	struct shard_entry entry;
	struct shard_error err;

	shard_dataset_info(s->t.dataset, &info);
	s->shard_first = calloc((size_t)info.shard_count + 1, sizeof(*s->shard_first));
	if (!s->shard_first)
		return classes_no_memory(&s->t);
	for (uint64_t i = 0; i < info.shard_count; i++) {
		int rc = shard_dataset_entry(s->t.dataset, i, &entry, &err);

		if (rc)
			return fail_of_library(&err);
		s->shard_first[i] = place_of(s, entry.first_record);
	}
	s->shard_first[info.shard_count] = s->data.record_count;
	s->data.shard_first = s->shard_first;
	s->data.shard_count = info.shard_count;
	return EXIT_DONE;
}

static int open_loader(struct study *s)
{
	struct shard_loader_options options = order_loader_options(&s->o->order);
	struct shard_error err;
	int rc;

	options.batch_records = s->data.batch_records;
	options.selection = s->selection;
	rc = shard_loader_open(&s->loader, s->t.dataset, &options, &err);
	if (rc)
		return fail_of_library(&err);
	shard_loader_order_info(s->loader, &s->order);
	s->data.run_records = s->order.kind == SHARD_SHUFFLE_WINDOWS && s->order.run_records < s->data.record_count
				      ? s->order.run_records
				      : 0;
	s->data.batch_count = shard_loader_step_count(s->loader) * s->o->epochs;
	return EXIT_DONE;
}

static int feed(struct study *s, struct mixing *m)
{
	uint64_t batch = s->data.batch_records, rows = shard_loader_step_count(s->loader) * batch;
	uint64_t at_a_time = ORDER_RECORDS / batch ? ORDER_RECORDS / batch * batch : batch;
	uint64_t *idx = malloc((size_t)at_a_time * sizeof(*idx));
	int rc = idx ? EXIT_DONE : classes_no_memory(&s->t);
	struct shard_error err;

	for (uint64_t e = 0; e < s->o->epochs && !rc; e++) {
		for (uint64_t first = 0; first < rows && !rc; first += at_a_time) {
			uint64_t now = rows - first < at_a_time ? rows - first : at_a_time;

			rc = shard_loader_order(s->loader, e, first, now, idx, &err);
			if (rc) {
				rc = fail_of_library(&err);
				break;
			}
			for (uint64_t i = 0; i < now; i++)
				idx[i] = place_of(s, idx[i]);
			for (uint64_t i = 0; i < now; i += batch)
				mixing_batch(m, e, idx + i);
			progress_add(&s->progress, now, 0, 0);
			progress_tick(&s->progress);
			if (interrupted())
				rc = EXIT_INTERRUPTED;
		}
	}
	free(idx);
	return rc;
}

/* ---- the report ---- */

static bool is_uniform(const struct mixing_result *r)
{
	double difference = fabs(r->measured - r->ideal);

	return difference <= SURE_ERRORS * r->error || difference <= SMALL_DIFFERENCE * r->ideal;
}

static void print_row(const char *name, const struct mixing_result *r)
{
	char verdict[64] = "uniform";

	if (!r->known)
		return;
	if (!isfinite(r->error))
		snprintf(verdict, sizeof(verdict), "one batch is not enough");
	else if (!is_uniform(r))
		snprintf(verdict, sizeof(verdict), "%.3g of uniform", r->measured / r->ideal);
	printf("  %-36s %12.4g %9.2g %12.4g  %s\n", name, r->measured, isfinite(r->error) ? r->error : 0, r->ideal,
	       verdict);
}

static void print_table(const struct study *s, const struct mixing *m, double run_correlation, double predicted)
{
	static const char *const names[MEASURES] = {
		[MIX_CLASSES] = "classes in a batch",
		[MIX_VARIANCE] = "variance of class counts (VIF)",
		[MIX_SHARDS] = "shards in a batch",
		[MIX_DISTANCE] = "distance of neighbours in a batch",
		[MIX_PAIRS] = "pairs that meet again next epoch",
	};
	char records[HUMAN_CHARS], batches[HUMAN_CHARS], text[ORDER_TEXT_CHARS], name[64];

	printf("order     %s\n", order_text(text, &s->order));
	printf("records   %s in %" PRIu64 " shard%s", human_count(records, s->data.record_count), s->data.shard_count,
	       s->data.shard_count == 1 ? "" : "s");
	if (s->data.class_of)
		printf(", %" PRIu32 " class%s of field %s", s->data.class_count, s->data.class_count == 1 ? "" : "es",
		       s->label->name);
	printf("\nbatches   %s of %" PRIu32 ", of %" PRIu64 " epoch%s\n\n", human_count(batches, s->data.batch_count),
	       s->data.batch_records, s->o->epochs, s->o->epochs == 1 ? "" : "s");
	printf("  %-36s %12s %9s %12s  %s\n", "measure", "measured", "+-", "ideal", "verdict");
	for (unsigned k = 0; k < MEASURES; k++) {
		struct mixing_result r = mixing_result(m, k);

		snprintf(name, sizeof(name), "runs of %" PRIu64 " in a batch", s->data.run_records);
		print_row(k == MIX_RUNS ? name : names[k], &r);
		if (k == MIX_VARIANCE && r.known && isfinite(predicted))
			printf("  %-36s %12.4g %9s %12s  from the windows and a class correlation of %.2g in a run\n",
			       "  as predicted", predicted, "", "", run_correlation);
	}
}

/*
 * The least window that keeps the variance within the limit; 0 if there is none but the whole
 * dataset.
 */
static uint64_t enough_window_runs(const struct study *s, double run_correlation)
{
	struct shard_order_info order = s->order;
	uint64_t all = s->data.record_count / order.run_records / order.lane_count;

	for (uint64_t w = order.window_runs; w <= all / 2; w += (w + 7) / 8) {
		order.window_runs = (uint32_t)w;
		if (mixing_predict_variance(&s->data, &order, run_correlation) <= VARIANCE_LIMIT)
			return w;
	}
	return 0;
}

static void warn_of_variance(const struct study *s, double variance, bool sorted, double run_correlation)
{
	uint64_t enough = isfinite(run_correlation) ? enough_window_runs(s, run_correlation) : 0;
	char more[64] = "";

	if (enough)
		snprintf(more, sizeof(more), ", or --window-runs %" PRIu64, enough);
	if (s->order.kind == SHARD_SEQUENTIAL)
		warn("class counts of batches vary %.3g times as much as they should: nothing is shuffled, and %s; use "
		     "--shuffle "
		     "global or windows",
		     variance, sorted ? "records are stored sorted by class" : "neighbours resemble each other");
	else if (s->order.kind == SHARD_SHUFFLE_GLOBAL)
		warn("class counts of batches vary %.3g times as much as they should, although the shuffle is global; "
		     "try another --seed, and report a bug if it happens again",
		     variance);
	else
		warn("class counts of batches vary %.3g times as much as they should: %s, and windows of %" PRIu32 " "
		     "runs mix too few of them; pack with shardpack --order shuffle, or use --shuffle global%s",
		     variance,
		     sorted ? "records are stored sorted by class"
			    : "records that are stored together resemble each other",
		     s->order.window_runs, more);
}

/* The last line: all is well, or a warning that says what to do. */
static void conclude(const struct study *s, const struct mixing *m, double run_correlation)
{
	struct mixing_result variance = mixing_result(m, MIX_VARIANCE);
	double next = s->data.class_of ? mixing_run_correlation(&s->data, 2) : NAN;
	bool sorted = isfinite(next) && next > 0.5, uniform = true;

	if (variance.known && variance.measured > VARIANCE_LIMIT && !is_uniform(&variance)) {
		warn_of_variance(s, variance.measured, sorted, run_correlation);
		return;
	}
	for (unsigned k = 0; k < MEASURES; k++) {
		struct mixing_result r = mixing_result(m, k);

		uniform = uniform && (!r.known || is_uniform(&r));
	}
	printf("\n%s%s\n",
	       uniform		? "mixed as a uniform shuffle would"
	       : variance.known ? "classes are mixed as a uniform shuffle would; some rows above are not "
				  "uniform"
				: "not mixed as a uniform shuffle would: some rows above are not uniform",
	       sorted ? "; records are stored sorted by class, so another order may mix them less well" : "");
}

static int report(struct study *s)
{
	struct mixing *m = NULL;
	double run_correlation = NAN, predicted = NAN;
	int rc = EXIT_DONE;

	progress_start(&s->progress, "studying", "records",
		       s->data.record_count * s->o->epochs + (s->label ? s->t.record_count : 0));
	if (s->label)
		rc = take_classes(s);
	if (!rc)
		rc = take_shards(s);
	if (!rc)
		rc = open_loader(s);
	if (!rc) {
		m = mixing_open(&s->data);
		rc = m ? feed(s, m) : classes_no_memory(&s->t);
	}
	progress_abandon(&s->progress);
	if (rc == EXIT_INTERRUPTED)
		fail(rc, "%s: interrupted", s->t.path);
	if (!rc) {
		if (s->data.class_of && s->data.run_records)
			run_correlation = mixing_run_correlation(&s->data, s->data.run_records);
		if (isfinite(run_correlation))
			predicted = mixing_predict_variance(&s->data, &s->order, run_correlation);
		print_table(s, m, run_correlation, predicted);
		conclude(s, m, run_correlation);
	}
	mixing_close(m);
	return rc;
}

/* The field that --field names, or the dataset's label; none is fine if none was asked for. */
static int find_label(const struct cli_args *args, struct study *s)
{
	const struct shard_field *f =
		s->o->field ? shard_schema_find(s->t.schema, s->o->field) : target_label_field(&s->t);

	if (s->o->field && !f)
		return cli_misuse(args, "--field %s: %s has no such field", s->o->field, s->t.path);
	if (f && (f->kind != SHARD_TENSOR || f->ndim || f->dtype < SHARD_U8 || f->dtype > SHARD_I64))
		return cli_misuse(args, "--field %s: must be a scalar of an integer dtype", f->name);
	if (!f)
		note("%s has no label field; classes are left out", s->t.path);
	s->label = f;
	return EXIT_DONE;
}

static int run_mix(const struct cli_args *args, const struct report_options *o)
{
	struct shard_loader_options options = order_loader_options(&o->order);

	if (o->path || o->field || o->select)
		return cli_misuse(args, "%s and --mix %s: give one of them",
				  o->path    ? o->path
				  : o->field ? "--field"
					     : "--select",
				  o->mix);
	options.batch_records = o->batch ? (uint32_t)o->batch : BATCH_DEFAULT;
	return mix_report(o->mix, &options, o->epochs);
}

static int run(const struct cli_args *args)
{
	struct study s = {.o = args->options};
	uint64_t quarter;
	int rc = order_options_check(args, &s.o->order);

	if (!rc && !s.o->path && !s.o->mix)
		rc = cli_misuse(args, "DIR is missing, or --mix FILE");
	if (rc || s.o->mix)
		return rc ? rc : run_mix(args, s.o);
	rc = target_open_dataset(&s.t, s.o->path);
	if (!rc)
		rc = find_label(args, &s);
	if (!rc)
		rc = take_selection(&s);
	if (!rc) {
		quarter = s.data.record_count / 4 > 2 ? s.data.record_count / 4 : 2;
		s.data.batch_records = s.o->batch ? (uint32_t)s.o->batch
						  : (uint32_t)(quarter < BATCH_DEFAULT ? quarter : BATCH_DEFAULT);
		if (s.data.batch_records > s.data.record_count)
			rc = fail(EXIT_USAGE, "%s: %" PRIu64 " records are too few for a batch of %" PRIu32, s.t.path,
				  s.data.record_count, s.data.batch_records);
	}
	if (!rc)
		rc = report(&s);
	shard_loader_close(s.loader);
	shard_selection_close(s.selection);
	classes_free(&s.classes);
	free(s.record);
	free(s.shard_first);
	target_close(&s.t);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {DIR_UNLESS_MIX(struct report_options), {0}};

static const struct cli_option options[] = {
	MIX_OPTION(struct report_options),
	SELECT_OPTION(struct report_options),
	{.name = "batch",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 2,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct report_options, batch),
	 .default_note = "256, or a quarter of all",
	 .help = "records per batch of all ranks"},
	{.name = "epochs",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = 1000,
	 .offset = offsetof(struct report_options, epochs),
	 .default_value = "2",
	 .help = "epochs to measure"},
	{.name = "field",
	 .kind = CLI_STRING,
	 .arg_name = "NAME",
	 .offset = offsetof(struct report_options, field),
	 .default_note = "the label",
	 .help = "integer field that holds the class"},
	{0},
};
/* clang-format on */

const struct cli_verb verb_shuffle_report = {
	.name = "shuffle-report",
	.positionals = positionals,
	.options = {order_option_table, options},
	.options_bytes = sizeof(struct report_options),
	.run = run,
};
