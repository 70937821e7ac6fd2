/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_stats.c - shardcat stats: means and deviations, least and greatest values, classes, and
 * copies
 *
 * census.c counts; here the counts become a report.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/common/json_out.h"
#include "tools/common/memory.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/shardcat.h"

#define BAR_CHARS 40

struct stats_options {
	const char *path;
	uint64_t classes, memory_bytes;
	bool recorded, sorted, json;
};

/* How even the classes are. */
struct balance {
	uint64_t records, largest, smallest, empty;
	double effective; /* as many classes of equal size would have the same entropy */
};

static struct balance balance_of(const struct census *c)
{
	struct balance b = {.smallest = c->class_count ? c->class_records[0] : 0};
	double entropy = 0;

	for (uint64_t i = 0; i < c->class_count; i++) {
		uint64_t n = c->class_records[i];

		b.records += n;
		b.largest = n > b.largest ? n : b.largest;
		b.smallest = n < b.smallest ? n : b.smallest;
		b.empty += !n;
	}
	for (uint64_t i = 0; i < c->class_count; i++) {
		double share = b.records ? (double)c->class_records[i] / (double)b.records : 0;

		entropy -= share > 0 ? share * log(share) : 0;
	}
	b.effective = b.records ? exp(entropy) : 0;
	return b;
}

struct row {
	uint64_t class_idx, records;
};

static int larger_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->records != y->records)
		return x->records < y->records ? 1 : -1;
	return x->class_idx < y->class_idx ? -1 : 1;
}

/* The classes in the order in which they are shown; to be freed. */
static struct row *rows_of(const struct census *c, bool sorted)
{
	struct row *rows = xcalloc((size_t)c->class_count + 1, sizeof(*rows));

	for (uint64_t i = 0; i < c->class_count; i++)
		rows[i] = (struct row){i, c->class_records[i]};
	if (sorted)
		qsort(rows, (size_t)c->class_count, sizeof(*rows), larger_first);
	return rows;
}

/* ---- text ---- */

static void print_field(const struct census *c, uint32_t field)
{
	const struct shard_field *f = &c->input->schema->field[field];
	const struct census_field *of = &c->field[field];
	char count[HUMAN_CHARS], min[INT128_CHARS], max[INT128_CHARS];
	bool is_of_bytes = f->semantic == SHARD_IMAGE && f->dtype == SHARD_U8; /* `info` scales these */

	if (!of->channels || (!c->has_read && !of->recorded))
		return;
	printf("%s, %s (%s)\n", f->name, shard_name(SHARD_NAME_DTYPE, f->dtype),
	       of->recorded	      ? c->has_read ? "mean and std recorded, and checked" : "recorded"
	       : of->sums[0].is_float ? "from the records, rounded"
				      : "from the records");
	for (uint32_t i = 0; i < of->channels; i++) {
		const struct sums *s = &of->sums[i];
		bool has_limits = c->has_read && s->count + s->nan + s->infinite;

		if (of->channels > 1)
			printf("  channel %" PRIu32 "  ", i);
		else
			printf("  ");
		printf("%s values", human_count(count, s->count));
		if (s->count)
			printf("  mean %.9g", sums_mean(s));
		if (isfinite(sums_std(s)))
			printf("  std %.9g", sums_std(s));
		if (has_limits && !s->is_float)
			printf("  min %s  max %s", int128_text(min, s->min), int128_text(max, s->max));
		else if (has_limits && s->count)
			printf("  min %.9g  max %.9g", s->float_min, s->float_max);
		if (is_of_bytes && s->count)
			printf("  (of 0..255)");
		if (has_limits && s->nan)
			printf("  %" PRIu64 " NaN", s->nan);
		if (has_limits && s->infinite)
			printf("  %" PRIu64 " infinite", s->infinite);
		putchar('\n');
		if (s->record_count && f->semantic == SHARD_IMAGE)
			printf("             mean over records of their mean %.9g, of their std %.9g\n",
			       (double)(s->record_means / s->record_count), (double)(s->record_stds / s->record_count));
	}
}

static void print_classes(const struct census *c, const struct stats_options *o)
{
	struct balance b = balance_of(c);
	struct row *rows = rows_of(c, o->sorted);
	uint64_t shown = c->class_count < o->classes ? c->class_count : o->classes;

	printf("%s, %" PRIu64 " class%s (%s): largest %" PRIu64 ", smallest %" PRIu64 ", %" PRIu64
	       " empty; as even as %.2f classes of one size\n",
	       c->label->name, c->class_count, c->class_count == 1 ? "" : "es",
	       !c->classes_recorded ? "from the records"
	       : c->has_read	    ? "recorded, and checked"
				    : "recorded",
	       b.largest, b.smallest, b.empty, b.effective);
	for (uint64_t i = 0; i < shown; i++) {
		const char *name = input_class_name(c->input, rows[i].class_idx);
		double records = (double)rows[i].records;
		char bar[BAR_CHARS + 1];
		size_t length = b.largest ? (size_t)(records / (double)b.largest * BAR_CHARS + 0.5) : 0;

		memset(bar, '#', length);
		bar[length] = 0;
		printf("  %6" PRIu64 " %12" PRIu64 "  %5.1f%%  %-*s  ", rows[i].class_idx, rows[i].records,
		       b.records ? 100.0 * records / (double)b.records : 0, BAR_CHARS, bar);
		if (name)
			escape_write(stdout, name, strlen(name), ESCAPE_EXACT);
		putchar('\n');
	}
	if (shown < c->class_count)
		printf("  and %" PRIu64 " more: --classes N shows N classes, --json shows all\n",
		       c->class_count - shown);
	if (c->other_labels)
		printf("  %" PRIu64 " record%s a label that is not a class\n", c->other_labels,
		       c->other_labels == 1 ? " has" : "s have");
	free(rows);
}

static int print_repeats(const struct census *c)
{
	const struct repeats *r = &c->repeats;
	struct shard_view key;
	int rc = EXIT_DONE;

	if (!r->groups) {
		printf("copies: none; all records differ%s\n", c->label ? " (labels are not compared)" : "");
		return EXIT_DONE;
	}
	printf("copies: %" PRIu64 " record%s the same as an earlier one, in %" PRIu64 " group%s; %" PRIu64
	       " of these with different labels\n",
	       r->extra, r->extra == 1 ? " is" : "s are", r->groups, r->groups == 1 ? "" : "s", r->label_conflicts);
	for (uint64_t i = 0; i < r->listed_count && i < 10 && !rc; i++) {
		const struct repeat *e = &r->listed[i];

		rc = input_key(c->input, e->first, &key);
		if (rc)
			break;
		printf("  record %" PRIu64 " occurs %" PRIu64 " times%s  ", e->first, e->count,
		       e->labels_differ ? ", with different labels" : "");
		escape_write(stdout, key.data, key.bytes, ESCAPE_EXACT);
		putchar('\n');
	}
	if (!rc && r->groups > 10)
		printf("  and %" PRIu64 " more groups; --json lists the first %d\n", r->groups - 10, REPEATS_LISTED);
	return rc;
}

static int print_text(const struct census *c, const struct stats_options *o)
{
	char count[HUMAN_CHARS];

	printf("%s record%s%s\n", human_count(count, c->input->record_count), c->input->record_count == 1 ? "" : "s",
	       c->has_read ? ", all of them read" : "; only the recorded statistics are shown");
	for (uint32_t i = 0; i < c->input->schema->field_count; i++)
		print_field(c, i);
	if (c->label && (c->has_read || c->classes_recorded))
		print_classes(c, o);
	return c->has_read && c->has_content ? print_repeats(c) : EXIT_DONE;
}

/* ---- JSON ---- */

/* As a number where every reader can take it, else as a string of digits. */
static void int128_json(struct json_out *j, const char *key, int128 value)
{
	char text[INT128_CHARS];

	if (value >= 0 && value <= UINT64_MAX)
		json_out_u64(j, key, (uint64_t)value);
	else if (value < 0 && value >= INT64_MIN)
		json_out_i64(j, key, (int64_t)value);
	else
		json_out_string(j, key, int128_text(text, value));
}

static void read_json(struct json_out *j, const struct sums *s)
{
	if (s->is_float) {
		json_out_double(j, "min", s->count ? s->float_min : (double)NAN);
		json_out_double(j, "max", s->count ? s->float_max : (double)NAN);
		json_out_u64(j, "not_finite", s->nan + s->infinite);
		json_out_u64(j, "nan", s->nan);
		json_out_u64(j, "infinite", s->infinite);
	} else if (s->count) {
		int128_json(j, "min", s->min);
		int128_json(j, "max", s->max);
	} else {
		json_out_null(j, "min");
		json_out_null(j, "max");
	}
	json_out_double(j, "mean_of_record_means", (double)(s->record_means / s->record_count));
	json_out_double(j, "mean_of_record_stds", (double)(s->record_stds / s->record_count));
}

static void field_json(struct json_out *j, const struct census *c, uint32_t field)
{
	const struct shard_field *f = &c->input->schema->field[field];
	const struct census_field *of = &c->field[field];
	char text[INT128_CHARS];

	for (uint32_t i = 0; i < of->channels && (c->has_read || of->recorded); i++) {
		const struct sums *s = &of->sums[i];

		json_out_object_line(j, NULL);
		json_out_string(j, "field", f->name);
		json_out_string(j, "dtype", shard_name(SHARD_NAME_DTYPE, f->dtype));
		json_out_u64(j, "channel", i);
		json_out_string(j, "from", of->recorded ? "recorded" : "records");
		json_out_bool(j, "exact", !s->is_float && !s->overflowed);
		json_out_u64(j, "count", s->count);
		if (!s->is_float) {
			int128_json(j, "sum", s->sum);
			if (s->overflowed)
				json_out_null(j, "sum_squares");
			else if (s->squares <= UINT64_MAX)
				json_out_u64(j, "sum_squares", (uint64_t)s->squares);
			else
				json_out_string(j, "sum_squares", wide_unsigned_text(text, s->squares));
		}
		json_out_double(j, "mean", sums_mean(s));
		json_out_double(j, "std", sums_std(s));
		if (c->has_read)
			read_json(j, s);
		json_out_end(j);
	}
}

static void classes_json(struct json_out *j, const struct census *c, bool sorted)
{
	struct balance b = balance_of(c);
	struct row *rows = rows_of(c, sorted);

	json_out_object(j, "classes");
	json_out_string(j, "field", c->label->name);
	json_out_string(j, "from", c->classes_recorded ? "recorded" : "records");
	json_out_u64(j, "count", c->class_count);
	json_out_u64(j, "largest", b.largest);
	json_out_u64(j, "smallest", b.smallest);
	json_out_u64(j, "empty", b.empty);
	json_out_double(j, "effective", b.effective);
	json_out_u64(j, "other_labels", c->other_labels);
	json_out_array(j, "rows");
	for (uint64_t i = 0; i < c->class_count; i++) {
		const char *name = input_class_name(c->input, rows[i].class_idx);

		json_out_object_line(j, NULL);
		json_out_u64(j, "class", rows[i].class_idx);
		if (name)
			json_out_string(j, "name", name);
		else
			json_out_null(j, "name");
		json_out_u64(j, "records", rows[i].records);
		json_out_end(j);
	}
	json_out_end(j);
	json_out_end(j);
	free(rows);
}

static void repeats_json(struct json_out *j, const struct repeats *r)
{
	json_out_object(j, "copies");
	json_out_u64(j, "groups", r->groups);
	json_out_u64(j, "records", r->extra);
	json_out_u64(j, "groups_with_different_labels", r->label_conflicts);
	json_out_array(j, "listed");
	for (uint64_t i = 0; i < r->listed_count; i++) {
		json_out_object_line(j, NULL);
		json_out_u64(j, "first", r->listed[i].first);
		json_out_u64(j, "count", r->listed[i].count);
		json_out_bool(j, "labels_differ", r->listed[i].labels_differ);
		json_out_end(j);
	}
	json_out_end(j);
	json_out_end(j);
}

static void print_json(const struct census *c, bool sorted)
{
	struct json_out j;

	json_out_start(&j, stdout);
	json_out_object(&j, NULL);
	json_out_u64(&j, "record_count", c->input->record_count);
	json_out_bool(&j, "records_read", c->has_read);
	json_out_array(&j, "statistics");
	for (uint32_t i = 0; i < c->input->schema->field_count; i++)
		field_json(&j, c, i);
	json_out_end(&j);
	if (c->label && (c->has_read || c->classes_recorded))
		classes_json(&j, c, sorted);
	else
		json_out_null(&j, "classes");
	if (c->has_read && c->has_content)
		repeats_json(&j, &c->repeats);
	else
		json_out_null(&j, "copies");
	json_out_end(&j);
	json_out_finish(&j);
}

static int run(const struct cli_args *args)
{
	const struct stats_options *o = args->options;
	struct census *c = xcalloc(1, sizeof(*c));
	struct input in = {0};
	int rc = input_open(&in, o->path);

	if (!rc)
		rc = census_open(c, &in);
	if (!rc && !o->recorded)
		rc = census_read(c, o->memory_bytes);
	if (!rc && o->json)
		print_json(c, o->sorted);
	else if (!rc)
		rc = print_text(c, o);
	census_close(c);
	free(c);
	input_close(&in);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {DIR_OR_SHARD(struct stats_options), {0}};

static const struct cli_option options[] = {
	{.name = "recorded",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct stats_options, recorded),
	 .help = "show only the statistics that the dataset has recorded; read no records"},
	{.name = "sorted",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct stats_options, sorted),
	 .help = "list classes by size, the largest first"},
	{.name = "classes",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .offset = offsetof(struct stats_options, classes),
	 .default_value = "40",
	 .help = "list at most N classes"},
	{.name = "memory",
	 .kind = CLI_SIZE,
	 .arg_name = "SIZE",
	 .min = 1 << 16,
	 .offset = offsetof(struct stats_options, memory_bytes),
	 .default_value = "256M",
	 .help = "memory for finding copies; a temporary file is used if more is needed"},
	AS_JSON(struct stats_options, "print one JSON document"),
	{0},
};
/* clang-format on */

const struct cli_verb verb_stats = {
	.name = "stats",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct stats_options),
	.run = run,
};
