/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture.c - several datasets as one: one behind the other, or their parts in a proportion
 *
 * A mixture and a concatenation first join their datasets: the records and shards of the first, then
 * those of the second.  The joined one has no manifest.  Its schema is that of the first part, with
 * as much room for values that vary in length as the widest part has: call joined_check_fields()
 * before a field of other parts is read.  The records lie in the shards as the schema of their own
 * part says.
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/base/words.h"
#include "libshard/format/format.h"
#include "libshard/order/order.h"
#include "shard_pack.h"

/* ---- what joined datasets must have in common ---- */

/*
 * Do both hold the same kind of values, so that rows of a batch can?  Room for values that vary in
 * length is as the data need it, so it differs between datasets that were packed alike.  So does that
 * for each text of a list, which ends before its first zero byte.
 */
static bool same_field(const struct shard_field *a, const struct shard_field *b)
{
	bool same = !strcmp(a->name, b->name) && a->dtype == b->dtype && a->kind == b->kind && a->layout == b->layout &&
		    a->semantic == b->semantic && a->ndim == b->ndim && a->ragged_axes == b->ragged_axes &&
		    a->length_field == b->length_field;

	for (uint32_t i = 0; same && i < a->ndim; i++)
		same = a->shape[i] == b->shape[i] || a->ragged_axes >> i & 1 || shard_field_is_texts(a);
	return same;
}

/* "ragged i32 [<=9]", and the layout and semantic unless they are none. */
static void describe(const struct shard_field *f, char out[160])
{
	int at = snprintf(out, 160, "%s %s [", shard_name(SHARD_NAME_KIND, f->kind),
			  shard_name(SHARD_NAME_DTYPE, f->dtype));

	for (uint32_t i = 0; i < f->ndim; i++)
		at += snprintf(out + at, 160 - (size_t)at, "%s%s%u", i ? "," : "", f->ragged_axes >> i & 1 ? "<=" : "",
			       f->shape[i]);
	at += snprintf(out + at, 160 - (size_t)at, "]");
	if (f->layout)
		at += snprintf(out + at, 160 - (size_t)at, " %s", shard_name(SHARD_NAME_LAYOUT, f->layout));
	if (f->semantic &&
	    strcmp(shard_name(SHARD_NAME_SEMANTIC, f->semantic), shard_name(SHARD_NAME_LAYOUT, f->layout)))
		snprintf(out + at, 160 - (size_t)at, " %s", shard_name(SHARD_NAME_SEMANTIC, f->semantic));
}

/* Is the group stored alike by both, with the same fields in the same places?  If only one has it, it is not. */
static bool same_group(const struct shard_schema *a, const struct shard_schema *b, uint32_t g)
{
	if (g >= a->group_count || g >= b->group_count || a->group[g].stride != b->group[g].stride)
		return false;
	for (uint32_t f = 0; f < a->field_count || f < b->field_count; f++) {
		const struct shard_field *x = f < a->field_count ? &a->field[f] : NULL,
					 *y = f < b->field_count ? &b->field[f] : NULL;

		if ((x && x->group == g) != (y && y->group == g) ||
		    (x && x->group == g && (x->offset != y->offset || x->bytes != y->bytes || !same_field(x, y))))
			return false;
	}
	return true;
}

/* Labels are numbers of classes.  `field` is one of labels, which may be left out; or it is NULL. */
static int check_classes(const struct shard_dataset *a, const struct shard_dataset *b, const char *field,
			 struct shard_error *err)
{
	uint64_t have = a->m.class_count, other = b->m.class_count;
	struct shown at[2], name[2];
	char leave[96] = "";

	if (field)
		snprintf(leave, sizeof(leave), ", or leave out field '%.64s'", field);

	for (uint64_t i = 0; i < have && i < other; i++) {
		const char *one = shard_dataset_class_name(a, i), *two = shard_dataset_class_name(b, i);

		if (strcmp(one, two))
			return error_set(err, SHARD_E_MISMATCH,
					 "class %" PRIu64 " is '%s' in %s, and '%s' in %s: their labels mean different "
					 "things; pack them with the same classes%s",
					 i, show(&name[0], one), show(&at[0], a->dir), show(&name[1], two),
					 show(&at[1], b->dir), leave);
	}
	if (have == other)
		return SHARD_OK;
	return error_set(err, SHARD_E_MISMATCH,
			 "%s has %" PRIu64 " classes, and %s has %" PRIu64 ": their labels mean different things; pack "
			 "them with the same classes%s",
			 show(&at[0], a->dir), have, show(&at[1], b->dir), other, leave);
}

/*
 * MISMATCH unless the datasets have the same classes, and the same of the fields that `fields` has a
 * bit for.  Where values vary in length, the largest shapes may differ.
 */
static int check_common(const struct shard_dataset *a, const struct shard_dataset *b, uint32_t fields,
			struct shard_error *err)
{
	const struct shard_schema *one = &a->m.schema, *two = &b->m.schema;
	struct shown at[2];
	int rc = SHARD_OK;

	for (uint32_t f = 0; !rc && f < one->field_count; f++) {
		const struct shard_field *x = &one->field[f], *y = f < two->field_count ? &two->field[f] : NULL;
		char here[160], there[160];

		if (!(fields >> f & 1))
			continue;
		if (!y || strcmp(x->name, y->name))
			return error_set(
				err, SHARD_E_MISMATCH,
				"field %u of %s is '%s', and %s has %s%s%s there; leave out the field, or pack "
				"both with the same options",
				f, show(&at[0], a->dir), x->name, show(&at[1], b->dir), y ? "'" : "no field",
				y ? y->name : "", y ? "'" : "");
		describe(x, here);
		describe(y, there);
		if (!same_field(x, y))
			return error_set(err, SHARD_E_MISMATCH,
					 "field '%s' is %s in %s, and %s in %s; leave out the field, or pack both with "
					 "the same options",
					 x->name, here, show(&at[0], a->dir), there, show(&at[1], b->dir));
		if (x->semantic == SHARD_LABEL)
			rc = check_classes(a, b, x->name, err);
	}
	return rc;
}

/* ---- one schema for all ---- */

/* That of the first part, with room for the longest values.  Other groups stay as they are. */
static int join_schemas(struct shard_dataset *ds, struct shard_dataset *const *part, uint32_t count,
			struct shard_error *err)
{
	struct shard_schema *s = &ds->m.schema, wide = part[0]->m.schema;
	uint32_t widened = 0; /* a bit for each group */
	int rc = SHARD_OK;

	*s = wide;
	for (uint32_t p = 1; p < count; p++)
		for (uint32_t f = 0; f < s->field_count && f < part[p]->m.schema.field_count; f++) {
			const struct shard_field *other = &part[p]->m.schema.field[f];
			struct shard_field *mine = &wide.field[f];

			for (uint32_t i = 0; same_field(mine, other) && i < mine->ndim; i++)
				if (other->shape[i] > mine->shape[i]) {
					mine->shape[i] = other->shape[i];
					widened |= UINT32_C(1) << mine->group;
				}
		}
	if (widened)
		rc = shard_schema_lay_out(&wide, 0, err);
	if (rc)
		return rc;
	for (uint32_t g = 0; g < s->group_count; g++)
		if (widened >> g & 1)
			s->group[g] = wide.group[g];
	for (uint32_t f = 0; f < s->field_count; f++)
		if (widened >> s->field[f].group & 1)
			s->field[f] = wide.field[f];
	for (uint32_t p = 0; p < count; p++) {
		ds->parts_differ |= !schema_equal(s, &part[p]->m.schema);
		for (uint32_t g = 0; g < s->group_count; g++)
			if (!same_group(s, &part[p]->m.schema, g))
				ds->uneven_groups |= UINT32_C(1) << g;
	}
	return SHARD_OK;
}

/* ---- joining ---- */

/*
 * `count` parts, 1 or more, which must outlive the joined dataset, `what` it is.  ARGUMENT if they
 * were not opened with the same checks.
 */
static int join_parts(struct shard_dataset **out, struct shard_dataset *const *part, uint32_t count, const char *what,
		      struct shard_error *err)
{
	uint64_t shard = 0, record = 0;
	char name[64];
	struct shard_dataset *ds;
	struct shown at[2];
	int rc;

	for (uint32_t p = 1; p < count; p++)
		if (part[p]->o.check != part[0]->o.check || part[p]->o.guard != part[0]->o.guard)
			return error_set(err, SHARD_E_ARGUMENT,
					 "%s and %s were opened with different options check or guard; open both with "
					 "the same",
					 show(&at[0], part[0]->dir), show(&at[1], part[p]->dir));
	ds = mem_zalloc(sizeof(*ds));
	if (!ds)
		return error_set(err, SHARD_E_MEMORY, "no memory for a dataset");
	ds->o = part[0]->o;
	rc = join_schemas(ds, part, count, err);
	if (rc) {
		mem_free(ds);
		return rc;
	}
	ds->part_count = count;
	snprintf(name, sizeof(name), "a %s of %u dataset%s", what, count, count == 1 ? "" : "s");
	ds->dir = mem_text(name);
	for (uint32_t p = 0; p < count; p++) {
		ds->m.shard_count += part[p]->m.shard_count;
		ds->data_bytes += part[p]->data_bytes;
	}
	ds->part = mem_array(count, sizeof(struct shard_dataset *));
	ds->part_shard = mem_array((size_t)count + 1, sizeof(*ds->part_shard));
	ds->first_record = mem_array((size_t)ds->m.shard_count + 1, sizeof(*ds->first_record));
	if (!readers_open(&ds->readers, ds->m.shard_count) || !ds->dir || !ds->part || !ds->part_shard ||
	    !ds->first_record) {
		shard_dataset_close(ds);
		return error_set(err, SHARD_E_MEMORY, "no memory for the tables of %u datasets", count);
	}
	for (uint32_t p = 0; p < count; p++) {
		ds->part[p] = part[p];
		for (uint64_t s = 0; s < part[p]->m.shard_count; s++)
			ds->first_record[shard + s] = record + part[p]->first_record[s];
		shard += part[p]->m.shard_count;
		record += part[p]->m.record_count;
		ds->part_shard[p + 1] = shard;
	}
	ds->first_record[shard] = ds->m.record_count = record;
	*out = ds;
	return SHARD_OK;
}

/* A part must have a manifest, so that there is one way to say which records come in which order. */
static int refuse_joined(const struct shard_dataset *ds, const char *what, uint32_t number, struct shard_error *err)
{
	struct shown s;

	if (!ds->part_count)
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT, "%s %" PRIu32 " is %s; give the datasets that it was made of instead",
			 what, number, show(&s, ds->dir));
}

int joined_check_fields(const struct shard_dataset *ds, uint32_t fields, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t p = 1; !rc && p < ds->part_count; p++)
		rc = check_common(ds->part[0], ds->part[p], fields, err);
	return rc;
}

/* ---- one behind the other ---- */

/* The id of a concatenation, of those of its parts: part 13 of format/ORDER.md. */
static void sign_concat(struct shard_dataset *ds)
{
	static const char head[] = "libshard concatenation 1\n";
	struct sha256 sha;

	sha256_init(&sha);
	sha256_update(&sha, head, sizeof(head) - 1);
	for (uint32_t p = 0; p < ds->part_count; p++) {
		char line[80], id[65];

		dataset_id(ds->part[p], id);
		sha256_update(&sha, line, (size_t)snprintf(line, sizeof(line), "dataset %s\n", id));
	}
	sha256_final(&sha, ds->text.end.sha256);
}

int shard_dataset_concat(struct shard_dataset **out, struct shard_dataset *const *parts, uint32_t count,
			 struct shard_error *err)
{
	struct shard_dataset *ds;
	int rc = count ? SHARD_OK : error_set(err, SHARD_E_ARGUMENT, "there are no datasets to concatenate");

	for (uint32_t p = 0; !rc && p < count; p++)
		rc = refuse_joined(parts[p], "part", p, err);
	for (uint32_t p = 1; !rc && p < count; p++)
		rc = check_classes(parts[0], parts[p], NULL, err);
	if (!rc)
		rc = join_parts(&ds, parts, count, "concatenation", err);
	if (rc)
		return rc;
	ds->m.class_count = parts[0]->m.class_count;
	sign_concat(ds);
	*out = ds;
	return SHARD_OK;
}

/* ---- sources ---- */

static int open_component(struct component *c, const struct shard_mix_source *s, uint32_t number,
			  struct shard_error *err)
{
	struct shown at;
	char what[64];
	int rc;

	if (!s->ds)
		return error_set(err, SHARD_E_ARGUMENT, "source %u of the mixture has no dataset", number);
	snprintf(what, sizeof(what), "the selection of source %u is", number);
	rc = refuse_joined(s->ds, "source", number, err);
	if (!rc && s->selection)
		rc = dataset_check_id(s->ds, s->selection->dataset_id, what, err);
	if (rc)
		return rc;
	*c = (struct component){.ds = s->ds, .selection = s->selection};
	c->count = s->selection ? s->selection->count : s->ds->m.record_count;
	if (c->count)
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT, "source %u of the mixture, %s, has no records", number,
			 show(&at, s->ds->dir));
}

/* Join the datasets of all sources, each once. */
static int join_sources(struct shard_mix *m, const struct shard_mix_source *sources, struct shard_error *err)
{
	struct shard_dataset **part = mem_array(m->component_count, sizeof(struct shard_dataset *));
	uint32_t *of = mem_array(m->component_count, sizeof(*of)), parts = 0;
	int rc = part && of ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for a mixture");

	for (uint32_t d = 0; !rc && d < m->component_count; d++) {
		while (of[d] < parts && part[of[d]] != sources[d].ds)
			of[d]++;
		if (of[d] == parts)
			part[parts++] = sources[d].ds;
	}
	if (!rc)
		rc = join_parts(&m->ds, part, parts, "mixture", err);
	for (uint32_t d = 0; !rc && d < m->component_count; d++)
		m->component[d].base = m->ds->first_record[m->ds->part_shard[of[d]]];
	mem_free(part);
	mem_free(of);
	return rc;
}

/* ---- weights ---- */

/*
 * Weights in proportion to shares, of which each is above 0.  Refused if the least weight is more
 * than twice what it stands for; the message has the weights that rounding would give, "4095, 1", and
 * the least share that would do, "0.0123".  With `of_records` the shares are the sizes of sources.
 */
static int round_shares(const double *share, uint32_t count, bool of_records, uint32_t *weight, struct shard_error *err)
{
	double sum = 0, enough, times;
	char weights[80], least[80];
	uint32_t small = 0, i;
	size_t n = 0;

	for (i = 0; i < count; i++)
		sum += share[i];
	mix_round_weights(share, count, weight);
	while (small < count && share[small] * (2 * MIX_WEIGHT_SUM_MAX) >= sum)
		small++;
	if (small == count)
		return SHARD_OK;
	for (i = 0; i < count && n < sizeof(weights) / 2; i++)
		n += (size_t)snprintf(weights + n, sizeof(weights) - n, "%s%" PRIu32, i ? ", " : "", weight[i]);
	if (i < count)
		snprintf(weights + n, sizeof(weights) - n, ", ...");
	times = sum / MIX_WEIGHT_SUM_MAX / share[small];
	if (of_records)
		return error_set(err, SHARD_E_ARGUMENT,
				 "source %u has %.0f of %.0f records; rounded to a sum of %u the weights would be %s, "
				 "so its records would come %.3g times as often as those of others; give whole weights "
				 "such as these",
				 small, share[small], sum, MIX_WEIGHT_SUM_MAX, weights, times);
	enough = (sum - share[small]) / (2 * MIX_WEIGHT_SUM_MAX - 1);
	snprintf(least, sizeof(least), "%.3g", enough);
	if (strtod(least, NULL) < enough) /* upwards */
		snprintf(least, sizeof(least), "%.3g", enough * 1.005);
	return error_set(err, SHARD_E_ARGUMENT,
			 "share %u is %.3g of %.3g; rounded to a sum of %u the weights would be %s, so its records "
			 "would come %.3g times as often; give it %s or more and leave the others, or give whole "
			 "weights such as these",
			 small, share[small], sum, MIX_WEIGHT_SUM_MAX, weights, times, least);
}

int shard_mix_round(const double *share, uint32_t count, uint32_t *weight, struct shard_error *err)
{
	if (!count || count > MIX_WEIGHT_SUM_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "a mixture has 1 to %u components, not %u", MIX_WEIGHT_SUM_MAX,
				 count);
	for (uint32_t i = 0; i < count; i++)
		if (!isfinite(share[i]) || share[i] <= 0 || share[i] > 1e300 / MIX_WEIGHT_SUM_MAX)
			return error_set(err, SHARD_E_ARGUMENT, "share %u is %g; it must be a number above 0", i,
					 share[i]);
	return round_shares(share, count, false, weight, err);
}

static int weigh_by_size(struct shard_mix *m, struct shard_error *err)
{
	double *share = mem_array(m->component_count, sizeof(*share));
	int rc;

	if (!share)
		return error_set(err, SHARD_E_MEMORY, "no memory for a mixture");
	for (uint32_t d = 0; d < m->component_count; d++)
		share[d] = (double)m->component[d].count;
	rc = round_shares(share, m->component_count, true, m->weight, err);
	mem_free(share);
	return rc;
}

static int weigh(struct shard_mix *m, const struct shard_mix_source *sources, struct shard_error *err)
{
	uint64_t sum = 0;
	uint32_t zeros = 0;

	for (uint32_t d = 0; d < m->component_count; d++) {
		m->weight[d] = sources[d].weight;
		sum += sources[d].weight;
		zeros += !sources[d].weight;
	}
	m->weight_sum = zeros ? MIX_WEIGHT_SUM_MAX : (uint32_t)sum;
	if (zeros == m->component_count)
		return weigh_by_size(m, err);
	for (uint32_t d = 0; zeros && d < m->component_count; d++)
		if (!m->weight[d])
			return error_set(err, SHARD_E_ARGUMENT,
					 "source %u of the mixture has weight 0, and others have more; give each 1 or "
					 "more, or all of them 0",
					 d);
	if (sum > MIX_WEIGHT_SUM_MAX)
		return error_set(err, SHARD_E_ARGUMENT,
				 "the weights of the mixture add up to %" PRIu64
				 "; at most %u, so use smaller ones, or "
				 "shard_mix_round()",
				 sum, MIX_WEIGHT_SUM_MAX);
	return SHARD_OK;
}

/* ---- epochs ---- */

static int set_epoch_records(struct shard_mix *m, const struct shard_mix_options *o, struct shard_error *err)
{
	unsigned __int128 least = 0, most = 0;

	if (o->stop > SHARD_MIX_SHORTEST)
		return error_set(err, SHARD_E_ARGUMENT, "options: stop is %u; must be 0 or 1", o->stop);
	for (uint32_t d = 0; d < m->component_count; d++) {
		unsigned __int128 all = (unsigned __int128)m->component[d].count * m->weight_sum;
		unsigned __int128 down = all / m->weight[d], up = (all + m->weight[d] - 1) / m->weight[d];

		least = d && least < down ? least : down;
		most = most > up ? most : up;
	}
	if (o->epoch_records > MIX_POSITIONS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "options: epoch_records is %" PRIu64 "; must be at most 2^62",
				 o->epoch_records);
	if (!o->epoch_records)
		most = o->stop == SHARD_MIX_LONGEST ? most : least;
	else
		most = o->epoch_records;
	if (most > MIX_POSITIONS_MAX)
		return error_set(err, SHARD_E_ARGUMENT,
				 "an epoch of this mixture has more than 2^62 positions; set epoch_records");
	m->epoch_records = (uint64_t)most;
	return SHARD_OK;
}

/* ---- life ---- */

static void sign(struct shard_mix *m)
{
	static const char head[] = "libshard mixture 1\n";
	uint8_t digest[SHA256_BYTES];
	struct sha256 sha;

	sha256_init(&sha);
	sha256_update(&sha, head, sizeof(head) - 1);
	for (uint32_t d = 0; d < m->component_count; d++) {
		const struct component *c = &m->component[d];
		char line[256], id[65];
		int n;

		dataset_id(c->ds, id);
		n = snprintf(line, sizeof(line), "weight %" PRIu32 " dataset %s subset %s\n", m->weight[d], id,
			     c->selection ? c->selection->digest : "all");
		sha256_update(&sha, line, (size_t)n);
	}
	sha256_final(&sha, digest);
	hex_from_bytes(m->digest, digest, sizeof(digest));
}

int shard_mix_open(struct shard_mix **out, const struct shard_mix_source *sources, uint32_t source_count,
		   const struct shard_mix_options *opt, struct shard_error *err)
{
	struct shard_mix_options o;
	struct shard_mix *m;
	int rc = options_take(&o, sizeof(o), opt, err);

	if (rc)
		return rc;
	if (!source_count || source_count > MIX_WEIGHT_SUM_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "a mixture has 1 to %u sources, not %u", MIX_WEIGHT_SUM_MAX,
				 source_count);
	m = mem_zalloc(sizeof(*m));
	if (!m)
		return error_set(err, SHARD_E_MEMORY, "no memory for a mixture");
	m->component_count = source_count;
	m->component = mem_array(source_count, sizeof(*m->component));
	m->weight = mem_array(source_count, sizeof(*m->weight));
	if (!m->component || !m->weight)
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a mixture of %u components", source_count);
	for (uint32_t d = 0; !rc && d < source_count; d++)
		rc = open_component(&m->component[d], &sources[d], d, err);
	if (!rc)
		rc = join_sources(m, sources, err);
	if (!rc)
		rc = weigh(m, sources, err);
	if (!rc)
		rc = set_epoch_records(m, &o, err);
	if (rc) {
		shard_mix_close(m);
		return rc;
	}
	sign(m);
	*out = m;
	return SHARD_OK;
}

void shard_mix_close(struct shard_mix *m)
{
	if (!m)
		return;
	shard_dataset_close(m->ds);
	mem_free(m->component);
	mem_free(m->weight);
	mem_free(m);
}

/* ---- asking ---- */

void shard_mix_info(const struct shard_mix *m, struct shard_mix_info *out)
{
	*out = (struct shard_mix_info){
		.epoch_records = m->epoch_records, .component_count = m->component_count, .weight_sum = m->weight_sum};
	memcpy(out->digest, m->digest, sizeof(out->digest));
}

int shard_mix_component(const struct shard_mix *m, uint32_t component, uint32_t *weight, uint64_t *records,
			struct shard_error *err)
{
	if (component >= m->component_count)
		return error_set(err, SHARD_E_ARGUMENT, "no component %u; the mixture has %u", component,
				 m->component_count);
	if (weight)
		*weight = m->weight[component];
	if (records)
		*records = m->component[component].count;
	return SHARD_OK;
}
