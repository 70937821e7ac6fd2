/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_select.c - shardcat select: choose records of a dataset, for loaders that deliver these alone
 *
 * Each condition chooses from what the one before it has left.
 *
 * --where is a condition on one field: label=cat,3 or score>=0.5.  An integer field with `=` takes a
 * list of values, which the library looks for.  All other conditions compare with one number or
 * string: here each record gets a byte that says whether it fits.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"
#include "tools/common/memory.h"
#include "tools/common/text.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/shardcat.h"

#define VALUES_MAX 65536u
#define PIECE	   4096u /* records that are read at a time */

enum sign { IS, IS_NOT, LESS, AT_MOST, MORE, AT_LEAST };

struct condition {
	const struct cli_args *args;
	const struct input *in;
	const struct shard_selection *of; /* choose from these records; NULL: from all */
	const struct shard_field *field;
	enum sign sign;
	const char *text;   /* all of it, for messages */
	const char *value;  /* what stands behind the sign */
	long double number; /* has room for every i64, u64 and f64 */
};

/* ---- --where: one of these values ---- */

static bool is_whole(const struct shard_field *f)
{
	return f->kind == SHARD_TENSOR && !f->ndim && (dtype_is_integer(f->dtype) || f->dtype == SHARD_BOOL);
}

/*
 * A number, or of the label field the name of a class.  A class whose name is a number needs its
 * index.
 */
static int parse_value(const struct condition *c, const char *text, size_t bytes, int64_t *out)
{
	bool is_label = c->field == input_label_field(c->in);
	int64_t named;

	if (text_i64(text, bytes, out)) {
		if (is_label && input_find_class(c->in, text, bytes, &named) && named != *out)
			return cli_misuse(c->args,
					  "--where %s=%.*s: is the index of one class and the name of another, %" PRId64
					  "; give the index of the class that you mean, after a zero: 0%" PRId64,
					  c->field->name, (int)bytes, text, named, named);
		return EXIT_DONE;
	}
	if (is_label && input_find_class(c->in, text, bytes, out))
		return EXIT_DONE;
	if (is_label && input_find_class(c->in, c->value, strlen(c->value), &named))
		return cli_misuse(c->args,
				  "--where %s=%s: a comma divides values; give the index of that class, %" PRId64,
				  c->field->name, c->value, named);
	return cli_misuse(c->args, "--where %s=%.*s: %s", c->field->name, (int)bytes, text,
			  is_label ? "there is no class of that name; 'shardcat stats' lists them"
				   : "must be a whole number");
}

static int select_values(struct shard_selection **out, const struct condition *c)
{
	int64_t *value = xmalloc(VALUES_MAX, sizeof(*value));
	const char *at = c->value - 1;
	struct shard_error err;
	uint64_t count = 0;
	int rc = EXIT_DONE;

	while (!rc) {
		size_t bytes = strcspn(++at, ",");

		if (count == VALUES_MAX)
			rc = cli_misuse(c->args, "--where %s: has more than %u values", c->field->name, VALUES_MAX);
		else
			rc = parse_value(c, at, bytes, &value[count++]);
		at += bytes;
		if (!*at)
			break;
	}
	if (!rc && shard_select_where(out, c->in->dataset, c->of, c->field->name, value, count, &err))
		rc = fail_of_library(&err);
	free(value);
	return rc;
}

/* ---- compared with a number ---- */

/* The nearest number that a floating-point field can hold: NumPy compares with that one. */
static double rounded(double value, uint32_t dtype)
{
	static const struct {
		int bits, least; /* of the significand; the exponent of the smallest number above 0 */
	} of[] = {[SHARD_F16] = {11, -24}, [SHARD_BF16] = {8, -133}, [SHARD_F32] = {24, -149}};
	int exponent;

	if (dtype == SHARD_F64 || !isfinite(value) || value == 0)
		return value;
	frexp(value, &exponent);
	exponent -= of[dtype].bits;
	if (exponent < of[dtype].least)
		exponent = of[dtype].least;
	return ldexp(nearbyint(ldexp(value, -exponent)), exponent);
}

/* A number past those of i64, which a u64 can be. */
static bool parse_large(struct condition *c)
{
	unsigned long long value;
	char *end;

	if (c->field->dtype != SHARD_U64 || !isdigit((unsigned char)c->value[0]))
		return false;
	errno = 0;
	value = strtoull(c->value, &end, 10);
	c->number = (long double)value;
	return !errno && !*end && value > INT64_MAX;
}

static int parse_limit(struct condition *c)
{
	size_t bytes = strlen(c->value);
	int64_t whole = 0;
	int rc = EXIT_DONE;

	if (is_whole(c->field)) {
		if (parse_large(c))
			return EXIT_DONE;
		if (c->sign == IS_NOT)
			rc = parse_value(c, c->value, bytes, &whole);
		else if (!text_i64(c->value, bytes, &whole))
			rc = cli_misuse(c->args, "--where %s: '%s' must be a whole number", c->text, c->value);
		c->number = (long double)whole;
		return rc;
	}
	c->number = rounded(strtod(c->value, NULL), c->field->dtype);
	if (!text_is_decimal(c->value, bytes, true) || isnan(c->number))
		return cli_misuse(c->args, "--where %s: '%s' must be a decimal number", c->text, c->value);
	return EXIT_DONE;
}

/* As IEEE 754 compares: a NaN fits != alone. */
static bool number_fits(const struct condition *c, const uint8_t *data)
{
	uint32_t dtype = c->field->dtype;
	long double a, b = c->number;

	if (dtype == SHARD_U64)
		a = (long double)(uint64_t)number_integer(dtype, data);
	else
		a = dtype == SHARD_I64 ? (long double)number_integer(dtype, data) : number_double(dtype, data);
	switch (c->sign) {
	case IS:
		return a == b;
	case IS_NOT:
		return a != b;
	case LESS:
		return a < b;
	case AT_MOST:
		return a <= b;
	case MORE:
		return a > b;
	case AT_LEAST:
		return a >= b;
	}
	return false;
}

/* ---- the records that fit ---- */

static bool string_fits(const struct condition *c, const uint8_t *data, const uint8_t *length)
{
	size_t bytes = strlen(c->value);
	bool is_same = bytes <= c->field->bytes && (uint64_t)number_integer(SHARD_U32, length) == bytes &&
		       !memcmp(data, c->value, bytes);

	return is_same == (c->sign == IS);
}

static int mark_records(const struct condition *c, uint8_t *mask)
{
	const struct shard_field *f = c->field, *lengths = &c->in->schema->field[f->length_field];
	uint64_t n = c->in->record_count;
	uint8_t *rows = xmalloc(PIECE, f->bytes), *length = xmalloc(PIECE, 4);
	bool is_string = f->kind == SHARD_STRING;
	struct shard_error err;
	int rc = SHARD_OK;

	for (uint64_t first = 0, count; !rc && first < n; first += count) {
		count = n - first < PIECE ? n - first : PIECE;
		rc = shard_dataset_column(c->in->dataset, f, first, count, rows, &err);
		if (!rc && is_string)
			rc = shard_dataset_column(c->in->dataset, lengths, first, count, length, &err);
		for (uint64_t i = 0; i < count && !rc; i++)
			mask[first + i] = is_string ? string_fits(c, rows + i * f->bytes, length + 4 * i)
						    : number_fits(c, rows + i * f->bytes);
	}
	free(rows);
	free(length);
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

static int select_marked(struct shard_selection **out, const struct condition *c)
{
	uint64_t n = c->in->record_count;
	uint8_t *mask = xcalloc(n, 1);
	struct shard_error err;
	int rc = mark_records(c, mask);

	if (!rc && shard_select_mask(out, c->in->dataset, c->of, mask, n, &err))
		rc = err.status == SHARD_E_ARGUMENT
			     ? fail(EXIT_USAGE, "%s: no record fits --where %s", c->in->path, c->text)
			     : fail_of_library(&err);
	free(mask);
	return rc;
}

/* ---- the condition ---- */

/* The sign at the beginning of `text`; returns its bytes, 0 if there is none. */
static size_t parse_sign(const char *text, enum sign *out)
{
	static const struct {
		const char *text;
		enum sign sign;
	} signs[] = {{"!=", IS_NOT}, {"<=", AT_MOST}, {">=", AT_LEAST}, {"=", IS}, {"<", LESS}, {">", MORE}};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		size_t bytes = strlen(signs[i].text);

		if (!strncmp(text, signs[i].text, bytes)) {
			*out = signs[i].sign;
			return bytes;
		}
	}
	return 0;
}

static int parse_condition(struct condition *c)
{
	size_t name_bytes = strcspn(c->text, "=!<>"), sign_bytes = parse_sign(c->text + name_bytes, &c->sign);
	char name[SHARD_NAME_BYTES];

	if (!sign_bytes)
		return cli_misuse(c->args,
				  "--where %s: must be FIELD=VALUE,..., or a field, one of != < <= > >=, and a value",
				  c->text);
	snprintf(name, sizeof(name), "%.*s", (int)name_bytes, c->text);
	if (name_bytes < sizeof(name))
		c->field = shard_schema_find(c->in->schema, name);
	if (!c->field)
		return cli_misuse(c->args, "--where %s: %s has no field '%.*s'; 'shardcat info' lists them", c->text,
				  c->in->path, (int)name_bytes, c->text);
	c->value = c->text + name_bytes + sign_bytes;
	if (c->field->kind == SHARD_STRING && c->sign != IS && c->sign != IS_NOT)
		return cli_misuse(c->args, "--where %s: %s is a string; only = and != compare strings", c->text, name);
	if (c->field->kind == SHARD_RAGGED || (c->field->kind == SHARD_TENSOR && c->field->ndim))
		return cli_misuse(c->args,
				  "--where %s: %s has several numbers in each record; must be a scalar or a string",
				  c->text, name);
	return EXIT_DONE;
}

/*
 * The records of *selection (NULL: of all) that fit replace it.  Reads the groups of the field
 * alone.
 */
static int apply_where(const struct cli_args *args, const struct input *in, const char *text,
		       struct shard_selection **selection)
{
	struct condition c = {.args = args, .in = in, .of = *selection, .text = text};
	struct shard_selection *chosen = NULL;
	int rc = parse_condition(&c);

	if (!rc && is_whole(c.field) && c.sign == IS && !parse_large(&c)) {
		rc = select_values(&chosen, &c);
	} else if (!rc) {
		if (c.field->kind == SHARD_TENSOR)
			rc = parse_limit(&c);
		if (!rc)
			rc = select_marked(&chosen, &c);
	}
	if (rc)
		return rc;
	shard_selection_close(*selection);
	*selection = chosen;
	return EXIT_DONE;
}

struct select_options {
	const char *path, *out, *part;
	struct cli_strings where;
	struct cli_part fold;
	uint64_t seed;
	bool rest, list;
};

/* ---- by chance ---- */

/* "0.9" is the first nine tenths, "0.9-1" the rest. */
static bool parse_part(const char *text, double *begin, double *end)
{
	char *behind;

	*begin = 0;
	*end = strtod(text, &behind);
	if (*behind == '-' && text_is_decimal(text, (size_t)(behind - text), false)) {
		*begin = *end;
		text = behind + 1;
	}
	return text_parse_double(text, strlen(text), end) && *begin >= 0 && *begin < *end && *end <= 1;
}

static int apply_chance(const struct cli_args *args, const struct input *in, struct shard_selection **selection)
{
	const struct select_options *o = args->options;
	struct shard_selection *chosen = NULL;
	struct shard_error err;
	double begin, end;
	int rc;

	if (o->part) {
		if (!parse_part(o->part, &begin, &end))
			return cli_misuse(args, "--part %s: must be a part from 0 to 1, such as 0.9, or 0.9-1",
					  o->part);
		rc = shard_select_fraction(&chosen, in->dataset, *selection, begin, end, o->seed, &err);
	} else if (o->fold.count) {
		if (o->fold.count > UINT32_MAX)
			return cli_misuse(args, "--fold: must be of at most %u parts", UINT32_MAX);
		rc = shard_select_fold(&chosen, in->dataset, *selection, (uint32_t)o->fold.idx, (uint32_t)o->fold.count,
				       o->rest ? SHARD_FOLD_REST : SHARD_FOLD_PART, o->seed, &err);
	} else {
		return EXIT_DONE;
	}
	if (rc)
		return fail_of_library(&err);
	shard_selection_close(*selection);
	*selection = chosen;
	return EXIT_DONE;
}

/* ---- what comes out ---- */

static int print_list(const struct shard_selection *s)
{
	struct shard_selection_info info;
	struct shard_error err;
	uint64_t idx[4096];

	shard_selection_info(s, &info);
	for (uint64_t first = 0, n; first < info.record_count && !ferror(stdout); first += n) {
		int rc;

		n = info.record_count - first < 4096 ? info.record_count - first : 4096;
		rc = shard_selection_records(s, first, n, idx, &err);
		if (rc)
			return fail_of_library(&err);
		for (uint64_t i = 0; i < n; i++)
			printf("%" PRIu64 "\n", idx[i]);
	}
	return EXIT_DONE;
}

static int write_selection(const struct shard_selection *s, const struct input *in, const char *path)
{
	struct shard_selection_info info;
	struct shard_error err;

	if (shard_selection_write(s, path, &err))
		return fail_of_library(&err);
	shard_selection_info(s, &info);
	note("%s: %" PRIu64 " of %" PRIu64 " records; what a loader reads is %.3g times what it delivers", path,
	     info.record_count, info.of_count, shard_selection_amplification(s, in->dataset));
	return EXIT_DONE;
}

static int run(const struct cli_args *args)
{
	const struct select_options *o = args->options;
	struct shard_selection *selection = NULL; /* NULL stands for all records */
	struct input in;
	int rc;

	if (!o->where.count && !o->part && !o->fold.count)
		return cli_misuse(args, "give --where, --part or --fold, to say which records");
	if (o->part && o->fold.count)
		return cli_misuse(args, "--part and --fold exclude each other");
	if (o->rest && !o->fold.count)
		return cli_misuse(args, "--rest needs --fold");
	if (!o->out == !o->list)
		return cli_misuse(args, "give --out FILE, or --list");
	rc = input_open_dataset(&in, o->path);
	for (size_t i = 0; !rc && i < o->where.count; i++)
		rc = apply_where(args, &in, o->where.items[i], &selection);
	if (!rc)
		rc = apply_chance(args, &in, &selection);
	if (!rc)
		rc = o->list ? print_list(selection) : write_selection(selection, &in, o->out);
	shard_selection_close(selection);
	input_close(&in);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {ONLY_DIR(struct select_options), {0}};

static const struct cli_option options[] = {
	{.name = "out",
	 .short_name = 'o',
	 .kind = CLI_FILE,
	 .arg_name = "FILE",
	 .offset = offsetof(struct select_options, out),
	 .help = "file for the selection"},
	{.name = "list",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct select_options, list),
	 .help = "print the indices of the records, one per line, and write no file"},
	{.name = "where",
	 .kind = CLI_STRING,
	 .many = true,
	 .arg_name = "CONDITION",
	 .offset = offsetof(struct select_options, where),
	 .help = "choose records that fit, such as label=cat,3 or 'score>=0.5'; the signs are = != < <= > >="},
	{.name = "part",
	 .kind = CLI_STRING,
	 .arg_name = "A-B",
	 .offset = offsetof(struct select_options, part),
	 .help = "choose a random part of the records: 0-0.9, or 0.9, is 90% of them, and 0.9-1 is the rest"},
	{.name = "fold",
	 .kind = CLI_PART,
	 .arg_name = "K/N",
	 .offset = offsetof(struct select_options, fold),
	 .help = "choose one of N equal random parts; K is 0 to N-1"},
	{.name = "rest",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct select_options, rest),
	 .help = "with --fold: choose all other parts instead"},
	{.name = "seed",
	 .kind = CLI_U64,
	 .arg_name = "S",
	 .offset = offsetof(struct select_options, seed),
	 .default_value = "0",
	 .help = "seed of the random parts of --part and --fold"},
	{0},
};
/* clang-format on */

const struct cli_verb verb_select = {
	.name = "select",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct select_options),
	.run = run,
};
