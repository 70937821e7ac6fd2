/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixing.c - how well batches are mixed, measured against batches drawn at random without
 * replacement
 *
 * Each batch gives one value per measure.  The standard error of their mean is taken twice, from
 * single batches and from the means of long stretches of batches, and the larger one counts:
 * batches of one window resemble each other.
 */
#include "tools/shardcat/prove/prove.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STRETCHES 32

struct series {
	double sum, squares;
	uint64_t count;
	double stretch_sum[STRETCHES];
	uint64_t stretch_count[STRETCHES];
};

struct mixing {
	struct mixing_data d;
	double ideal[MEASURES], scale[MEASURES]; /* a batch's value is divided by `scale` */
	double square_of_shares;		 /* sum over the classes of p^2 */
	struct series series[MEASURES];
	uint64_t batch_idx; /* of all that are fed */
	uint64_t epoch, epoch_batch_idx;
	bool later_epoch;      /* there was one before this */
	uint64_t *sorted;      /* [batch_records] */
	uint32_t *in_batch;    /* [class_count] zero between batches */
	uint32_t *batch_of[2]; /* [record_count] from 1, in this epoch and the one before; 0: in none */
};

/* That a batch has any of `size` of the `n` records: 1 - (n - size choose B) / (n choose B). */
static double chance_of(uint64_t size, uint64_t n, uint64_t batch_records)
{
	uint64_t less = size < batch_records ? size : batch_records, more = size < batch_records ? batch_records : size;
	double none = 1;

	for (uint64_t i = 0; i < less; i++) /* size and batch may change places */
		none *= more + i < n ? (double)(n - more - i) / (double)(n - i) : 0;
	return 1 - none;
}

/*
 * Pairs of a batch that shared one in the epoch before, if both are random: B (B - 1) / 2 pairs,
 * each of which shared one of N div B batches with probability B (B - 1) / (N (N - 1)).
 */
static double pairs_by_chance(const struct mixing_data *d)
{
	uint64_t batches = d->record_count / d->batch_records;
	double n = (double)d->record_count, b = d->batch_records;

	return b * (b - 1) / 2 * (double)batches * b * (b - 1) / (n * (n - 1));
}

static void set_ideals(struct mixing *m)
{
	const struct mixing_data *d = &m->d;
	double n = (double)d->record_count, b = d->batch_records;
	uint64_t whole_runs = d->run_records ? d->record_count / d->run_records : 0;

	for (unsigned k = 0; k < MEASURES; k++)
		m->scale[k] = 1;
	for (uint32_t c = 0; c < d->class_count; c++) {
		double p = (double)d->class_records[c] / n;

		m->ideal[MIX_CLASSES] += chance_of(d->class_records[c], d->record_count, d->batch_records);
		m->square_of_shares += p * p;
	}
	/* Of hypergeometric counts: sum over the classes of B p (1 - p) (N - B) / (N - 1). */
	m->scale[MIX_VARIANCE] = b * (1 - m->square_of_shares) * (n - b) / (n - 1);
	m->ideal[MIX_VARIANCE] = 1;
	for (uint64_t s = 0; s < d->shard_count; s++)
		m->ideal[MIX_SHARDS] +=
			chance_of(d->shard_first[s + 1] - d->shard_first[s], d->record_count, d->batch_records);
	if (whole_runs)
		m->ideal[MIX_RUNS] = (double)whole_runs * chance_of(d->run_records, d->record_count, d->batch_records) +
				     chance_of(d->record_count % d->run_records, d->record_count, d->batch_records);
	m->ideal[MIX_DISTANCE] = (n + 1) / 3;
	m->ideal[MIX_PAIRS] = 1;
	m->scale[MIX_PAIRS] = pairs_by_chance(d);
}

struct mixing *mixing_open(const struct mixing_data *d)
{
	struct mixing *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->d = *d;
	m->sorted = calloc(d->batch_records, sizeof(*m->sorted));
	m->in_batch = calloc((size_t)d->class_count + 1, sizeof(*m->in_batch));
	for (unsigned i = 0; i < 2; i++)
		m->batch_of[i] = calloc((size_t)d->record_count, sizeof(*m->batch_of[i]));
	if (!m->sorted || !m->in_batch || !m->batch_of[0] || !m->batch_of[1]) {
		mixing_close(m);
		return NULL;
	}
	set_ideals(m);
	return m;
}

void mixing_close(struct mixing *m)
{
	if (!m)
		return;
	free(m->sorted);
	free(m->in_batch);
	free(m->batch_of[0]);
	free(m->batch_of[1]);
	free(m);
}

/* ---- a batch ---- */

static void add(struct mixing *m, enum measure what, double value)
{
	struct series *s = &m->series[what];
	unsigned stretch = (unsigned)(m->batch_idx * STRETCHES / m->d.batch_count);

	stretch = stretch < STRETCHES ? stretch : STRETCHES - 1;
	value /= m->scale[what];
	s->sum += value;
	s->squares += value * value;
	s->count++;
	s->stretch_sum[stretch] += value;
	s->stretch_count[stretch]++;
}

/* Distinct classes, and sum over the classes of (count - B p)^2. */
static void add_classes(struct mixing *m, const uint64_t *record)
{
	const struct mixing_data *d = &m->d;
	double b = d->batch_records, deviations = b * b * m->square_of_shares; /* of counts that are all 0 */
	uint32_t distinct = 0;

	for (uint32_t i = 0; i < d->batch_records; i++) {
		uint32_t c = d->class_of[record[i]];
		double p = (double)d->class_records[c] / (double)d->record_count;

		distinct += !m->in_batch[c];
		deviations += 2 * (double)m->in_batch[c] + 1 - 2 * b * p; /* a count grows by one */
		m->in_batch[c]++;
	}
	for (uint32_t i = 0; i < d->batch_records; i++)
		m->in_batch[d->class_of[record[i]]] = 0;
	add(m, MIX_CLASSES, distinct);
	if (m->square_of_shares < 1 && d->batch_records < d->record_count)
		add(m, MIX_VARIANCE, deviations);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void add_places(struct mixing *m, const uint64_t *record)
{
	const struct mixing_data *d = &m->d;
	uint64_t runs = 0, shards = 0, last_run = UINT64_MAX, shard = 0;
	double distance = 0;

	memcpy(m->sorted, record, d->batch_records * sizeof(*record));
	qsort(m->sorted, d->batch_records, sizeof(*m->sorted), compare);
	for (uint32_t i = 0; i < d->batch_records; i++) {
		uint64_t run = d->run_records ? m->sorted[i] / d->run_records : 0;

		runs += run != last_run;
		last_run = run;
		shards += m->sorted[i] >= d->shard_first[shard];
		while (m->sorted[i] >= d->shard_first[shard]) /* of the next shard: ends with the record count */
			shard++;
	}
	for (uint32_t i = 1; i < d->batch_records; i++)
		distance += record[i] > record[i - 1] ? (double)(record[i] - record[i - 1])
						      : (double)(record[i - 1] - record[i]);
	if (d->run_records)
		add(m, MIX_RUNS, (double)runs);
	add(m, MIX_SHARDS, (double)shards);
	if (d->batch_records > 1)
		add(m, MIX_DISTANCE, distance / (d->batch_records - 1));
}

static void add_pairs(struct mixing *m, const uint32_t *batch_before, const uint64_t *record)
{
	const struct mixing_data *d = &m->d;
	uint64_t pairs = 0, same = 0;

	for (uint32_t i = 0; i < d->batch_records; i++)
		m->sorted[i] = batch_before[record[i]];
	qsort(m->sorted, d->batch_records, sizeof(*m->sorted), compare);
	for (uint32_t i = 1; i < d->batch_records; i++) {
		same = m->sorted[i] == m->sorted[i - 1] && m->sorted[i] ? same + 1 : 0;
		pairs += same;
	}
	add(m, MIX_PAIRS, (double)pairs);
}

void mixing_batch(struct mixing *m, uint64_t epoch, const uint64_t *record)
{
	uint32_t *batch_of = m->batch_of[epoch & 1];

	if (m->batch_idx && epoch != m->epoch) {
		m->epoch_batch_idx = 0;
		m->later_epoch = true;
		memset(batch_of, 0, (size_t)m->d.record_count * sizeof(*batch_of));
	}
	m->epoch = epoch;
	if (m->d.class_of)
		add_classes(m, record);
	add_places(m, record);
	if (m->later_epoch && m->d.batch_records > 1)
		add_pairs(m, m->batch_of[~epoch & 1], record);
	for (uint32_t i = 0; i < m->d.batch_records; i++)
		batch_of[record[i]] = (uint32_t)(m->epoch_batch_idx + 1);
	m->epoch_batch_idx++;
	m->batch_idx++;
}

/* ---- results ---- */

static double error_of_mean(double sum, double squares, uint64_t count)
{
	double mean = sum / (double)count,
	       variance = (squares / (double)count - mean * mean) * (double)count / (double)(count - 1);

	return variance > 0 ? sqrt(variance / (double)count) : 0;
}

struct mixing_result mixing_result(const struct mixing *m, enum measure what)
{
	const struct series *s = &m->series[what];
	struct mixing_result r = {.known = s->count > 0, .ideal = m->ideal[what]};
	double sum = 0, squares = 0;
	uint64_t stretches = 0;

	if (!r.known)
		return r;
	r.measured = s->sum / (double)s->count;
	r.error = s->count > 1 ? error_of_mean(s->sum, s->squares, s->count) : INFINITY;
	for (unsigned i = 0; i < STRETCHES; i++) {
		double mean = s->stretch_count[i] ? s->stretch_sum[i] / (double)s->stretch_count[i] : 0;

		sum += mean;
		squares += mean * mean;
		stretches += s->stretch_count[i] > 0;
	}
	if (stretches > 1)
		r.error = fmax(r.error, error_of_mean(sum, squares, stretches));
	if (what == MIX_PAIRS) /* few meet by chance: at least the error of a count that is Poisson's */
		r.error = fmax(r.error, 1 / sqrt((double)s->count * pairs_by_chance(&m->d)));
	return r;
}

/* ---- predictions for a windowed order ---- */

double mixing_run_correlation(const struct mixing_data *d, uint64_t run_records)
{
	uint64_t n = d->record_count, r = run_records < n ? run_records : n;
	double squares = 0, sum = 0, shares = 0, same;
	uint32_t *count = calloc((size_t)d->class_count + 1, sizeof(*count));

	if (!count || r < 2) {
		free(count);
		return NAN;
	}
	for (uint32_t c = 0; c < d->class_count; c++)
		shares += (double)d->class_records[c] / (double)n * ((double)d->class_records[c] / (double)n);
	for (uint64_t i = 0; i < r; i++)
		squares += 2.0 * count[d->class_of[i]]++ + 1;
	for (uint64_t i = 0; i < n; i++) { /* all runs of the circle: i to i + r - 1 */
		sum += squares;
		squares -= 2.0 * count[d->class_of[i]]-- - 1;
		squares += 2.0 * count[d->class_of[(i + r) % n]]++ + 1;
	}
	free(count);
	same = (sum / (double)n - (double)r) / ((double)r * (double)(r - 1));
	return shares < 1 ? (same - shares) / (1 - shares) : NAN;
}

/* format/ORDER.md, part 5, in its letters. */
struct lanes {
	uint64_t r, L, K, q, e, long_ticks, end;
	double rest, rest_in_runs;
};

static struct lanes lanes_of(uint64_t n, const struct shard_order_info *order)
{
	struct lanes s = {.r = order->run_records, .L = order->lane_count};
	uint64_t runs = n / s.r, windows;

	s.K = runs / s.L;
	windows = s.K / order->window_runs ? s.K / order->window_runs : 1;
	s.q = s.K / windows;
	s.e = s.K % windows;
	s.long_ticks = s.e * (s.q + 1) * s.r;
	s.end = s.K * s.L * s.r;
	s.rest = (double)(n - s.end);
	s.rest_in_runs = (double)(runs % s.L * s.r);
	return s;
}

/*
 * Ordered pairs that come from one run, of `count` records of a window of `of` records in whole
 * runs.
 */
static double pairs_of_runs(double count, double of, uint64_t r)
{
	return of > 1 ? count * (count - 1) * (double)(r - 1) / (of - 1) : 0;
}

/* The same for what a lane delivers in its ticks from `from` to `to`. */
static double pairs_of_lane(const struct lanes *s, uint64_t from, uint64_t to)
{
	double pairs = 0;

	while (from < to) {
		bool is_long = from < s->long_ticks;
		uint64_t ticks = (s->q + is_long) * s->r, start = is_long ? 0 : s->long_ticks;
		uint64_t end = start + ((from - start) / ticks + 1) * ticks;
		uint64_t until = end < to ? end : to;

		pairs += pairs_of_runs((double)(until - from), (double)ticks, s->r);
		from = until;
	}
	return pairs;
}

/*
 * The same for a batch: lanes below both remainders, between them, and above both have other ticks.
 */
static double pairs_of_batch(const struct lanes *s, uint64_t from, uint64_t to)
{
	uint64_t in_lanes = to < s->end ? to : s->end;
	double pairs = 0;

	if (from < in_lanes) {
		uint64_t a = from / s->L, x = from % s->L, c = in_lanes / s->L, y = in_lanes % s->L;
		uint64_t low = x < y ? x : y, high = x < y ? y : x;

		pairs += (double)low * pairs_of_lane(s, a + 1, c + 1);
		pairs += (double)(high - low) * pairs_of_lane(s, a + (x > y), c + (y > x));
		pairs += (double)(s->L - high) * pairs_of_lane(s, a, c);
	}
	from = from > s->end ? from : s->end;
	if (from < to && s->rest > 1)
		pairs += pairs_of_runs((double)(to - from), s->rest, s->r) * s->rest_in_runs / s->rest;
	return pairs;
}

double mixing_predict_variance(const struct mixing_data *d, const struct shard_order_info *order,
			       double run_correlation)
{
	uint64_t batches = d->record_count / d->batch_records, runs = d->record_count / order->run_records;
	struct lanes s = lanes_of(d->record_count, order);
	double n = (double)d->record_count, b = d->batch_records, r = (double)s.r, share = 0, of_run, other;

	if (d->batch_records < 2 || d->record_count <= d->batch_records || s.r >= d->record_count)
		return 1;
	for (uint64_t i = 0; i < batches; i++)
		share += pairs_of_batch(&s, i * d->batch_records, (i + 1) * d->batch_records);
	share /= (double)batches * b * (b - 1);
	/*
	 * A record's correlations with all others sum up to -1; of those, so many are of its run,
	 * on average.
	 */
	of_run = (r - 1) * (double)runs * r / n;
	other = (-1 - of_run * run_correlation) / (n - 1 - of_run);
	return (1 + (b - 1) * (share * run_correlation + (1 - share) * other)) * (n - 1) / (n - b);
}
