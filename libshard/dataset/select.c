/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.c - selections by number, by value and by chance
 *
 * Built with -ffp-contract=off: a cut is rounded after each operation.
 */
#include "shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/order/order.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define CHANCE_EPOCH (UINT64_MAX - 1) /* of the order that fractions are taken of; packing has UINT64_MAX */
#define PIECE	     4096u	      /* places of an order that are looked at together */
#define VALUES	     65536u	      /* of a field */

/* ---- what all of them share ---- */

/* Is `of` a selection of this dataset?  NULL is the whole of it. */
static int check_of(const struct shard_dataset *ds, const struct shard_selection *of, struct shard_error *err)
{
	return of ? dataset_check_id(ds, of->dataset_id, "the selection to choose from is", err) : SHARD_OK;
}

void selection_keep(uint64_t *bits, const struct shard_selection *of)
{
	uint64_t next = 0;

	for (uint64_t i = 0; i < of->count; i++) {
		uint64_t record = selection_following(of, i, next);

		for (; next < record; next++)
			bits[next / 64] &= ~(UINT64_C(1) << (next & 63));
		next = record + 1;
	}
	for (; next < of->of_count; next++)
		bits[next / 64] &= ~(UINT64_C(1) << (next & 63));
}

/* ---- by number ---- */

int shard_select_open(struct shard_selection **out, struct shard_dataset *ds, const uint64_t *idx, uint64_t count,
		      struct shard_error *err)
{
	uint64_t *bits;
	int rc = selection_open_bits(ds, &bits, err);

	for (uint64_t i = 0; !rc && i < count; i++) {
		if (idx[i] >= ds->m.record_count)
			rc = error_set(err, SHARD_E_ARGUMENT,
				       "idx[%" PRIu64 "] is %" PRIu64 "; the dataset has %" PRIu64 " records", i,
				       idx[i], ds->m.record_count);
		else if (bits[idx[i] / 64] >> (idx[i] & 63) & 1)
			rc = error_set(err, SHARD_E_ARGUMENT,
				       "idx[%" PRIu64 "] is %" PRIu64
				       ", which was there before; a selection has a record once",
				       i, idx[i]);
		else
			selection_set_bit(bits, idx[i]);
	}
	if (!rc)
		return selection_make(out, ds, bits, "the list", err);
	mem_free(bits);
	return rc;
}

/* ---- by value ---- */

static int compare_values(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* An integer of the field's type; u64 beyond i64 have no value here. */
static bool load_value(const struct shard_field *f, const uint8_t *at, int64_t *out)
{
	size_t bytes = shard_dtype_bytes(f->dtype);
	bool is_signed =
		f->dtype == SHARD_I8 || f->dtype == SHARD_I16 || f->dtype == SHARD_I32 || f->dtype == SHARD_I64;
	uint64_t value = 0;

	memcpy(&value, at, bytes);
	if (is_signed && bytes < 8 && value >> (8 * bytes - 1))
		value |= ~UINT64_C(0) << (8 * bytes);
	*out = (int64_t)value;
	return is_signed || value <= INT64_MAX;
}

int shard_select_where(struct shard_selection **out, struct shard_dataset *ds, const struct shard_selection *of,
		       const char *field, const int64_t *values, uint64_t value_count, struct shard_error *err)
{
	const struct shard_field *f = shard_schema_find(&ds->m.schema, field);
	uint64_t *bits, n = ds->m.record_count;
	int64_t *wanted = NULL; /* ascending */
	uint8_t *piece = NULL;
	char what[160], had[64] = "";
	int64_t least = INT64_MAX, most = INT64_MIN;
	int rc = check_of(ds, of, err);

	if (rc)
		return rc;
	if (!f || (!schema_is_integer_scalar(f) && !(f->dtype == SHARD_BOOL && !f->ndim)))
		return error_set(err, SHARD_E_ARGUMENT, "field '%s' %s", field,
				 f ? "is not an integer scalar, so records cannot be selected by its value"
				   : "is not in the dataset");
	rc = selection_open_bits(ds, &bits, err);
	if (rc)
		return rc;
	wanted = mem_array((size_t)value_count + 1, sizeof(*wanted));
	piece = mem_alloc((size_t)(VALUES * f->bytes));
	if (!wanted || !piece)
		rc = error_set(err, SHARD_E_MEMORY, "no memory for %" PRIu64 " values", value_count + VALUES);
	if (!rc && value_count) {
		memcpy(wanted, values, (size_t)value_count * sizeof(*values));
		qsort(wanted, (size_t)value_count, sizeof(*values), compare_values);
	}
	for (uint64_t first = 0; !rc && first < n; first += VALUES) {
		uint64_t count = min_u64(VALUES, n - first);

		rc = shard_dataset_column(ds, f, first, count, piece, err);
		for (uint64_t i = 0; !rc && i < count; i++) {
			int64_t value;

			if (!load_value(f, piece + i * f->bytes, &value))
				continue;
			least = value < least ? value : least;
			most = value > most ? value : most;
			if (bsearch(&value, wanted, (size_t)value_count, sizeof(value), compare_values))
				selection_set_bit(bits, first + i);
		}
	}
	mem_free(piece);
	mem_free(wanted);
	if (rc) {
		mem_free(bits);
		return rc;
	}
	if (of)
		selection_keep(bits, of);
	if (least <= most)
		snprintf(had, sizeof(had), " (the dataset has %" PRId64 " to %" PRId64 ")", least, most);
	if (value_count == 1)
		snprintf(what, sizeof(what), "where %.48s is %" PRId64 "%s", field, values[0], had);
	else
		snprintf(what, sizeof(what), "where %.48s is one of %" PRIu64 " values%s", field, value_count, had);
	return selection_make(out, ds, bits, what, err);
}

int shard_select_mask(struct shard_selection **out, struct shard_dataset *ds, const struct shard_selection *of,
		      const uint8_t *mask, uint64_t count, struct shard_error *err)
{
	uint64_t *bits;
	int rc = check_of(ds, of, err);

	if (rc)
		return rc;
	if (count != ds->m.record_count)
		return error_set(err, SHARD_E_ARGUMENT,
				 "the mask has %" PRIu64 " items; must be one for each of %" PRIu64 " records", count,
				 ds->m.record_count);
	rc = selection_open_bits(ds, &bits, err);
	if (rc)
		return rc;
	for (uint64_t i = 0; i < count; i++)
		if (mask[i])
			selection_set_bit(bits, i);
	if (of)
		selection_keep(bits, of);
	return selection_make(out, ds, bits, "the mask", err);
}

/* ---- by chance ---- */

struct places {
	uint64_t n, begin, end;
	bool others; /* all but those */
};

/* Set the bits of the records at the places [first, end) of the order. */
static void set_places(const struct shard_selection *of, const struct order *order, uint64_t first, uint64_t end,
		       uint64_t *bits)
{
	uint64_t idx[PIECE];

	for (uint64_t at = first; at < end; at += PIECE) {
		size_t count = (size_t)min_u64(PIECE, end - at);

		order_fill(order, at, 1, idx, count);
		if (of)
			selection_many(of, idx, count);
		for (size_t i = 0; i < count; i++)
			selection_set_bit(bits, idx[i]);
	}
}

static int select_places(struct shard_selection **out, struct shard_dataset *ds, const struct shard_selection *of,
			 const struct places *p, uint64_t seed, const char *what, struct shard_error *err)
{
	struct order_params params = {
		.kind = ORDER_ONE_LEVEL, .record_count = p->n, .seed = seed, .epoch = CHANCE_EPOCH};
	struct order *order = order_in(mem_alloc(order_bytes(&params)), &params);
	uint64_t *bits;
	int rc;

	if (!order)
		return error_set(err, SHARD_E_MEMORY, "no memory for an order of %" PRIu64 " records", p->n);
	rc = selection_open_bits(ds, &bits, err);
	if (!rc && p->others) {
		set_places(of, order, 0, p->begin, bits);
		set_places(of, order, p->end, p->n, bits);
	} else if (!rc) {
		set_places(of, order, p->begin, p->end, bits);
	}
	mem_free(order);
	return rc ? rc : selection_make(out, ds, bits, what, err);
}

static uint64_t count_of(const struct shard_dataset *ds, const struct shard_selection *of)
{
	return of ? of->count : ds->m.record_count;
}

/* Part 11 of format/ORDER.md. */
static uint64_t cut_at(double part, uint64_t n)
{
	return part >= 1 ? n : min_u64((uint64_t)(part * (double)n + 0.5), n);
}

int shard_select_fraction(struct shard_selection **out, struct shard_dataset *ds, const struct shard_selection *of,
			  double begin, double end, uint64_t seed, struct shard_error *err)
{
	struct places p = {.n = count_of(ds, of)};
	char what[64];
	int rc = check_of(ds, of, err);

	if (rc)
		return rc;
	if (!(begin >= 0 && begin < end && end <= 1))
		return error_set(err, SHARD_E_ARGUMENT, "the part from %g to %g; must be 0 <= begin < end <= 1", begin,
				 end);
	p.begin = cut_at(begin, p.n);
	p.end = cut_at(end, p.n);
	snprintf(what, sizeof(what), "the part from %g to %g", begin, end);
	return select_places(out, ds, of, &p, seed, what, err);
}

int shard_select_fold(struct shard_selection **out, struct shard_dataset *ds, const struct shard_selection *of,
		      uint32_t fold, uint32_t fold_count, uint32_t which, uint64_t seed, struct shard_error *err)
{
	struct places p = {.n = count_of(ds, of), .others = which == SHARD_FOLD_REST};
	char what[64];
	int rc = check_of(ds, of, err);

	if (rc)
		return rc;
	if (fold >= fold_count || which > SHARD_FOLD_REST)
		return error_set(err, SHARD_E_ARGUMENT, "fold %u of %u, which %u; must be below %u, and at most 1",
				 fold, fold_count, which, fold_count);
	p.begin = (uint64_t)((unsigned __int128)p.n * fold / fold_count);
	p.end = (uint64_t)((unsigned __int128)p.n * (fold + UINT64_C(1)) / fold_count);
	snprintf(what, sizeof(what), "%s fold %u of %u", p.others ? "all but" : "only", fold, fold_count);
	return select_places(out, ds, of, &p, seed, what, err);
}

/* ---- what it costs ---- */

double shard_selection_amplification(const struct shard_selection *s, const struct shard_dataset *ds)
{
	const struct shard_schema *schema = &ds->m.schema;
	double read = 0, wanted = 0;

	for (uint32_t g = 0; g < schema->group_count; g++) {
		double stride = (double)schema->group[g].stride;
		uint64_t unit = schema->group[g].unit_records;

		read += stride * (double)selection_units(s, unit) * (double)unit;
		wanted += stride * (double)s->count;
	}
	return read > wanted ? read / wanted : 1;
}
