/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture.c - opens a mixture: shard_mix.h
 */
#include "libshard/dataset/mixture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/base/words.h"
#include "libshard/dataset/dataset.h"
#include "libshard/dataset/selection.h"
#include "libshard/format/format.h"
#include "libshard/order/order.h"
#include "shard_mix.h"

/* ---- sources ---- */

static int take_source(struct component *c, const struct shard_mix_source *s, uint32_t number, struct shard_error *err)
{
	struct shown at;
	char what[64];
	int rc = SHARD_OK;

	if (!s->ds)
		return error_set(err, SHARD_E_ARGUMENT, "source %u of the mixture has no dataset", number);
	snprintf(what, sizeof(what), "the selection of source %u", number);
	if (s->selection)
		rc = selection_check(s->selection, s->ds, what, err);
	if (rc)
		return rc;
	*c = (struct component){.ds = s->ds, .selection = s->selection};
	c->count = s->selection ? s->selection->count : shard_dataset_record_count(s->ds);
	if (c->count)
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT, "source %u of the mixture, %s, has no records", number,
			 show(&at, s->ds->dir));
}

/* Join the datasets, each once. */
static int join(struct shard_mix *m, const struct shard_mix_source *sources, struct shard_error *err)
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
		rc = dataset_join(&m->ds, part, parts, err);
	for (uint32_t d = 0; !rc && d < m->component_count; d++)
		m->component[d].base = dataset_part_base(m->ds, of[d]);
	mem_free(part);
	mem_free(of);
	return rc;
}

/* ---- weights ---- */

/* Is the least weight more than twice of what it stands for? */
static bool is_too_small(double share, double sum)
{
	return share * (2 * MIX_WEIGHT_SUM_MAX) < sum;
}

#define ROUNDED_BYTES 80

/* The weights that rounding would give, "4095, 1", and the least share that would do, "0.0123". */
static void describe_rounding(const double *share, double sum, uint32_t count, uint32_t small, uint32_t *weight,
			      char weights[ROUNDED_BYTES], char least[ROUNDED_BYTES])
{
	double x = (sum - share[small]) / (2 * MIX_WEIGHT_SUM_MAX - 1);
	uint32_t i;
	size_t n = 0;

	mix_round_weights(share, count, weight);
	for (i = 0; i < count && n < ROUNDED_BYTES / 2; i++)
		n += (size_t)snprintf(weights + n, ROUNDED_BYTES - n, "%s%" PRIu32, i ? ", " : "", weight[i]);
	if (i < count)
		snprintf(weights + n, ROUNDED_BYTES - n, ", ...");
	snprintf(least, ROUNDED_BYTES, "%.3g", x);
	if (strtod(least, NULL) < x) /* upwards */
		snprintf(least, ROUNDED_BYTES, "%.3g", x * 1.005);
}

int shard_mix_round(const double *share, uint32_t count, uint32_t *weight, struct shard_error *err)
{
	char weights[ROUNDED_BYTES], least[ROUNDED_BYTES];
	double sum = 0;

	if (!count || count > MIX_WEIGHT_SUM_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "a mixture has 1 to %u components, not %u", MIX_WEIGHT_SUM_MAX,
				 count);
	for (uint32_t i = 0; i < count; i++)
		if (!isfinite(share[i]) || share[i] <= 0 || share[i] > 1e300 / MIX_WEIGHT_SUM_MAX)
			return error_set(err, SHARD_E_ARGUMENT, "share %u is %g; it must be a number above 0", i,
					 share[i]);
	for (uint32_t i = 0; i < count; i++)
		sum += share[i];
	for (uint32_t i = 0; i < count; i++)
		if (is_too_small(share[i], sum)) {
			describe_rounding(share, sum, count, i, weight, weights, least);
			return error_set(
				err, SHARD_E_ARGUMENT,
				"share %u is %.3g of %.3g; rounded to a sum of %u the weights would be %s, so its "
				"records would come %.3g times as often; give it %s or more and leave the others, or "
				"give whole weights such as these",
				i, share[i], sum, MIX_WEIGHT_SUM_MAX, weights, sum / MIX_WEIGHT_SUM_MAX / share[i],
				least);
		}
	mix_round_weights(share, count, weight);
	return SHARD_OK;
}

/* In proportion to the records. */
static int weigh_by_size(struct shard_mix *m, struct shard_error *err)
{
	double *share = mem_array(m->component_count, sizeof(*share)), sum = 0;
	char weights[ROUNDED_BYTES], least[ROUNDED_BYTES];
	int rc = SHARD_OK;

	if (!share)
		return error_set(err, SHARD_E_MEMORY, "no memory for a mixture");
	for (uint32_t d = 0; d < m->component_count; d++)
		sum += share[d] = (double)m->component[d].count;
	for (uint32_t d = 0; !rc && d < m->component_count; d++)
		if (is_too_small(share[d], sum)) {
			describe_rounding(share, sum, m->component_count, d, m->weight, weights, least);
			rc = error_set(err, SHARD_E_ARGUMENT,
				       "source %u has %.0f of %.0f records; rounded to a sum of %u the weights would "
				       "be %s, so its records would come %.3g times as often as those of others; give "
				       "whole weights such as these",
				       d, share[d], sum, MIX_WEIGHT_SUM_MAX, weights,
				       sum / MIX_WEIGHT_SUM_MAX / share[d]);
		}
	if (!rc)
		rc = shard_mix_round(share, m->component_count, m->weight, err);
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

static int settle_epoch(struct shard_mix *m, const struct shard_mix_options *o, struct shard_error *err)
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

static int open_parts(struct shard_mix *m, const struct shard_mix_source *sources, const struct shard_mix_options *o,
		      struct shard_error *err)
{
	int rc = SHARD_OK;

	m->component = mem_array(m->component_count, sizeof(*m->component));
	m->weight = mem_array(m->component_count, sizeof(*m->weight));
	if (!m->component || !m->weight)
		return error_set(err, SHARD_E_MEMORY, "no memory for a mixture of %u components", m->component_count);
	for (uint32_t d = 0; !rc && d < m->component_count; d++)
		rc = take_source(&m->component[d], &sources[d], d, err);
	if (!rc)
		rc = join(m, sources, err);
	if (!rc)
		rc = weigh(m, sources, err);
	if (!rc)
		rc = settle_epoch(m, o, err);
	return rc;
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
	rc = open_parts(m, sources, &o, err);
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

int mixture_check_fields(const struct shard_mix *m, uint32_t fields, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t p = 1; !rc && p < m->ds->part_count; p++)
		rc = dataset_agree(m->ds->part[0], m->ds->part[p], fields, err);
	return rc;
}

void shard_mix_info(const struct shard_mix *m, struct shard_mix_info *out)
{
	*out = (struct shard_mix_info){
		.epoch_records = m->epoch_records, .component_count = m->component_count, .weight_sum = m->weight_sum};
	memcpy(out->digest, m->digest, sizeof(out->digest));
}

uint32_t shard_mix_weight(const struct shard_mix *m, uint32_t component)
{
	return component < m->component_count ? m->weight[component] : 0;
}

uint64_t shard_mix_records(const struct shard_mix *m, uint32_t component)
{
	return component < m->component_count ? m->component[component].count : 0;
}
