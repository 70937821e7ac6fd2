/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where.c - records of a dataset by a condition on one field: label=cat,3 or score>=0.5
 *
 * * An integer field with `=` takes a list of values, which the library looks for.  All other
 * conditions compare with one number or string: here each record gets a byte that says whether it
 * fits.
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/text.h"
#include "tools/shardcat/dataset/number.h"

#define VALUES_MAX 65536u
#define PIECE	   4096u /* records that are read at a time */

enum sign { IS, IS_NOT, LESS, AT_MOST, MORE, AT_LEAST };

struct condition {
	const struct cli_args *args;
	const struct target *t;
	const struct shard_selection *of;
	const struct shard_field *field;
	enum sign sign;
	const char *text;   /* all of it, for messages */
	const char *value;  /* what stands behind the sign */
	long double number; /* has room for every i64, u64 and f64 */
};

/* ---- one of these values ---- */

static bool is_integer(const struct shard_field *f)
{
	return f->kind == SHARD_TENSOR && !f->ndim &&
	       ((f->dtype >= SHARD_U8 && f->dtype <= SHARD_I64) || f->dtype == SHARD_BOOL);
}

/*
 * A number, or of the label field the name of a class.  A class whose name is a number needs its
 * index.
 */
static int take_value(const struct condition *c, const char *text, size_t bytes, int64_t *out)
{
	bool is_label = c->field == target_label_field(c->t);
	int64_t named;

	if (text_i64(text, bytes, out)) {
		if (is_label && target_find_class(c->t, text, bytes, &named) && named != *out)
			return cli_misuse(c->args,
					  "--where %s=%.*s: is the index of one class and the name of another, %" PRId64
					  "; give the index of the class that you mean, after a zero: 0%" PRId64,
					  c->field->name, (int)bytes, text, named, named);
		return EXIT_DONE;
	}
	if (is_label && target_find_class(c->t, text, bytes, out))
		return EXIT_DONE;
	if (is_label && target_find_class(c->t, c->value, strlen(c->value), &named))
		return cli_misuse(c->args,
				  "--where %s=%s: a comma divides values; give the index of that class, %" PRId64,
				  c->field->name, c->value, named);
	return cli_misuse(c->args, "--where %s=%.*s: %s", c->field->name, (int)bytes, text,
			  is_label ? "there is no class of that name; 'shardcat stats' lists them"
				   : "must be a whole number");
}

static int select_values(struct shard_selection **out, const struct condition *c)
{
	int64_t *value = malloc(VALUES_MAX * sizeof(*value));
	const char *at = c->value - 1;
	struct shard_error err;
	uint64_t count = 0;
	int rc = value ? EXIT_DONE : fail(EXIT_IO, "out of memory");

	while (!rc) {
		size_t bytes = strcspn(++at, ",");

		if (count == VALUES_MAX)
			rc = cli_misuse(c->args, "--where %s: has more than %u values", c->field->name, VALUES_MAX);
		else
			rc = take_value(c, at, bytes, &value[count++]);
		at += bytes;
		if (!*at)
			break;
	}
	if (!rc && shard_select_where(out, c->t->dataset, c->of, c->field->name, value, count, &err))
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
static bool take_large(struct condition *c)
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

static int take_limit(struct condition *c)
{
	size_t bytes = strlen(c->value);
	int64_t whole = 0;
	int rc = EXIT_DONE;

	if (is_integer(c->field)) {
		if (take_large(c))
			return EXIT_DONE;
		if (c->sign == IS_NOT)
			rc = take_value(c, c->value, bytes, &whole);
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

static long double number_of(uint32_t dtype, const void *data)
{
	if (dtype == SHARD_U64)
		return (long double)(uint64_t)number_integer(dtype, data);
	return dtype == SHARD_I64 ? (long double)number_integer(dtype, data) : number_double(dtype, data);
}

/* As IEEE 754 compares: a NaN fits != alone. */
static bool fits(long double a, enum sign sign, long double b)
{
	switch (sign) {
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

/* Bytes of strings, and their lengths. */
static bool same_string(const struct condition *c, const uint8_t *at, const uint8_t *length)
{
	size_t bytes = strlen(c->value);

	return (uint64_t)number_integer(SHARD_U32, length) == bytes && !memcmp(at, c->value, bytes);
}

static int mark_piece(const struct condition *c, uint64_t first, uint64_t count, uint8_t *rows, uint8_t *mask)
{
	const struct shard_field *f = c->field, *lengths = &c->t->schema->field[f->length_field];
	uint8_t *length = rows + PIECE * f->bytes;
	bool is_string = f->kind == SHARD_STRING;
	struct shard_error err;

	if (shard_dataset_column(c->t->dataset, f, first, count, rows, &err) ||
	    (is_string && shard_dataset_column(c->t->dataset, lengths, first, count, length, &err)))
		return fail_of_library(&err);
	for (uint64_t i = 0; i < count; i++)
		if (is_string)
			mask[first + i] = same_string(c, rows + i * f->bytes, length + 4 * i) == (c->sign == IS);
		else
			mask[first + i] = fits(number_of(f->dtype, rows + i * f->bytes), c->sign, c->number);
	return EXIT_DONE;
}

static int select_marked(struct shard_selection **out, const struct condition *c)
{
	uint64_t n = c->t->record_count;
	uint8_t *mask = calloc(n ? n : 1, 1), *rows = malloc((size_t)(PIECE * (c->field->bytes + 4)));
	struct shard_error err;
	int rc =
		mask && rows ? EXIT_DONE : fail(EXIT_IO, "out of memory for a byte for each of %" PRIu64 " records", n);

	for (uint64_t first = 0; !rc && first < n; first += PIECE)
		rc = mark_piece(c, first, n - first < PIECE ? n - first : PIECE, rows, mask);
	if (!rc && shard_select_mask(out, c->t->dataset, c->of, mask, n, &err))
		rc = err.status == SHARD_E_ARGUMENT
			     ? fail(EXIT_USAGE, "%s: no record fits --where %s", c->t->path, c->text)
			     : fail_of_library(&err);
	free(mask);
	free(rows);
	return rc;
}

/* ---- the condition ---- */

/* Take the sign at the beginning of `text`; returns its bytes, 0 if there is none. */
static size_t take_sign(const char *text, enum sign *out)
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

static int take_condition(struct condition *c)
{
	size_t name_bytes = strcspn(c->text, "=!<>"), sign_bytes = take_sign(c->text + name_bytes, &c->sign);
	char name[SHARD_NAME_BYTES];

	if (!sign_bytes)
		return cli_misuse(c->args,
				  "--where %s: must be FIELD=VALUE,..., or a field, one of != < <= > >=, and a value",
				  c->text);
	snprintf(name, sizeof(name), "%.*s", (int)name_bytes, c->text);
	if (name_bytes < sizeof(name))
		c->field = shard_schema_find(c->t->schema, name);
	if (!c->field)
		return cli_misuse(c->args, "--where %s: %s has no field '%.*s'; 'shardcat info' lists them", c->text,
				  c->t->path, (int)name_bytes, c->text);
	c->value = c->text + name_bytes + sign_bytes;
	if (c->field->kind == SHARD_STRING && c->sign != IS && c->sign != IS_NOT)
		return cli_misuse(c->args, "--where %s: %s is a string; only = and != compare strings", c->text, name);
	if (c->field->kind == SHARD_RAGGED || (c->field->kind == SHARD_TENSOR && c->field->ndim))
		return cli_misuse(c->args,
				  "--where %s: %s has several numbers in each record; must be a scalar or a string",
				  c->text, name);
	return EXIT_DONE;
}

int where_select(struct shard_selection **out, const struct cli_args *args, const struct target *t,
		 const struct shard_selection *of, const char *text)
{
	struct condition c = {.args = args, .t = t, .of = of, .text = text};
	int rc = take_condition(&c);

	if (rc)
		return rc;
	if (is_integer(c.field) && c.sign == IS && !take_large(&c))
		return select_values(out, &c);
	if (c.field->kind == SHARD_TENSOR)
		rc = take_limit(&c);
	return rc ? rc : select_marked(out, &c);
}
