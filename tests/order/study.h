/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study.h - twelve statistics of a series of permutations of one n, each with a p-value
 *
 * study_add takes one permutation after another; study_end compares the sums with what independent
 * uniform permutations give.  A relation between two permutations is studied by studying their
 * quotient, which is uniform if they are independent.  Values of [0, n) are also seen as the
 * Feistel network sees them: hi = x div b, lo = x mod b.
 */
#ifndef TESTS_ORDER_STUDY_H
#define TESTS_ORDER_STUDY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/order/pvalue.h"

#define STUDY_N_MAX	((uint64_t)1 << 21)
#define STUDY_HALF_MAX	1536 /* b of the largest n, rounded up */
#define STUDY_SHIFTS	8    /* pairs that differ in hi alone, by 1 to this */
#define STUDY_NEAR	16
#define STUDY_DISTANCES 4096

enum study_test {
	STUDY_DISTANCE,	  /* (y - x) mod n: Kolmogorov-Smirnov */
	STUDY_FIXED,	  /* y = x: Poisson */
	STUDY_FOLLOWS,	  /* x, x + 1 become neighbours: Poisson */
	STUDY_STEPS,	  /* y(x + 1) - y(x) mod n in 256 classes: chi-square */
	STUDY_NEAR_STEPS, /* the same, each of the 32 shortest by itself */
	STUDY_HALVES,	  /* differences of hi and of lo for x and x + 1 */
	STUDY_COLUMNS,	  /* the same for x and x + k * b, k from 1 to 8 */
	STUDY_GRID,	  /* place by value in 16 x 16 classes, all permutations added: chi-square */
	STUDY_EVENNESS,	  /* the same of each permutation by itself, the statistics added */
	STUDY_CYCLES,	  /* count of cycles */
	STUDY_BITS,	  /* how often each bit of x turns each of the 8 highest bits of y */
	STUDY_LABELS,	  /* classes in batches of class-sorted data against the hypergeometric law */
	STUDY_TESTS
};

struct study {
	uint64_t n, a, b, count;
	uint32_t grid_side, bit_count, batch, class_count, distance_classes, step_classes;
	double *half_law[2]; /* how probable each difference of hi, of lo is for two different values */
	double *class_weight;
	uint32_t *class_rows;
	uint16_t *hi, *lo;
	uint8_t *cell, *top, *seen;

	uint64_t distance[STUDY_DISTANCES], fixed, follows, step[256], near[2 * STUDY_NEAR];
	uint64_t half[2][STUDY_HALF_MAX], column[2][STUDY_HALF_MAX], grid[256], flips[32][8], flip_trials[32];
	double half_pairs, column_law[STUDY_HALF_MAX], evenness, cycles, labels;
};

static inline void *study_take(size_t bytes)
{
	void *p = calloc(bytes ? bytes : 1, 1);

	if (!p)
		abort();
	return p;
}

/*
 * law[d] for (f(y') - f(y)) mod m, where share[v] of the n values have f(y) = v, and y' is not y.
 */
static inline void difference_law(double *law, const double *share, uint64_t m, double n)
{
	for (uint64_t d = 0; d < m; d++) {
		law[d] = d ? 0 : -n;
		for (uint64_t v = 0; v < m; v++)
			law[d] += share[v] * share[v + d < m ? v + d : v + d - m];
		law[d] /= n * (n - 1);
	}
}

static inline uint32_t class_of(const struct study *s, uint64_t x)
{
	return (uint32_t)(x * s->class_count / s->n);
}

static inline void study_begin(struct study *s, uint64_t n)
{
	double share[STUDY_HALF_MAX];

	memset(s, 0, sizeof(*s));
	s->n = n;
	s->b = (uint64_t)ceil(sqrt((double)n));
	s->a = (n + s->b - 1) / s->b;
	s->grid_side = n >= 2048 ? 16 : 4;
	s->bit_count = n >= 2048 ? 8 : 3;
	s->batch = n >= 4096 ? 256 : (uint32_t)n / 16;
	s->class_count = n >= 64000 ? 1000 : (uint32_t)n / 64 + 3;
	s->distance_classes = n < STUDY_DISTANCES ? (uint32_t)n : STUDY_DISTANCES;
	s->step_classes = n >= 2048 ? 256 : (uint32_t)n / 8;
	s->half_law[0] = study_take(s->a * sizeof(double));
	s->half_law[1] = study_take(s->b * sizeof(double));
	for (uint64_t v = 0; v < s->a; v++)
		share[v] = (double)(v + 1 < s->a ? s->b : n - v * s->b);
	difference_law(s->half_law[0], share, s->a, (double)n);
	for (uint64_t v = 0; v < s->b; v++)
		share[v] = (double)(s->a - (v >= n - (s->a - 1) * s->b));
	difference_law(s->half_law[1], share, s->b, (double)n);
	s->class_weight = study_take(s->class_count * sizeof(double));
	s->class_rows = study_take(s->class_count * sizeof(uint32_t));
	for (uint64_t x = 0; x < n; x++)
		s->class_weight[class_of(s, x)] += 1;
	s->hi = study_take(n * sizeof(uint16_t));
	s->lo = study_take(n * sizeof(uint16_t));
	s->cell = study_take(n);
	s->top = study_take(n);
	s->seen = study_take(n);
	for (uint64_t x = 0; x < n; x++)
		s->cell[x] = (uint8_t)(x * s->grid_side / n);
}

static inline void study_steps(struct study *s, const uint32_t *y)
{
	uint64_t n = s->n;

	for (uint64_t x = 0; x < n; x++) {
		uint64_t d = y[x] >= x ? y[x] - x : y[x] + n - x;

		s->distance[d * s->distance_classes / n]++;
		s->fixed += d == 0;
	}
	for (uint64_t x = 0; x + 1 < n; x++) {
		uint64_t d = y[x + 1] >= y[x] ? y[x + 1] - y[x] : y[x + 1] + n - y[x];

		s->step[(d - 1) * s->step_classes / (n - 1)]++;
		if (d <= STUDY_NEAR)
			s->near[d - 1]++;
		else if (n - d <= STUDY_NEAR)
			s->near[STUDY_NEAR + n - d - 1]++;
		s->follows += y[x + 1] == y[x] + 1 || y[x + 1] + 1 == y[x];
	}
}

static inline uint32_t modular(uint32_t x, uint32_t y, uint64_t m)
{
	return x >= y ? x - y : x + (uint32_t)m - y;
}

static inline void study_halves(struct study *s, const uint32_t *y)
{
	uint64_t n = s->n, a = s->a, b = s->b;

	for (uint64_t x = 0; x < n; x++) {
		s->hi[x] = (uint16_t)(y[x] / b);
		s->lo[x] = (uint16_t)(y[x] - s->hi[x] * b);
	}
	for (uint64_t x = 0; x + 1 < n; x++) {
		s->half[0][modular(s->hi[x + 1], s->hi[x], a)]++;
		s->half[1][modular(s->lo[x + 1], s->lo[x], b)]++;
	}
	s->half_pairs += (double)n - 1;
	for (uint64_t x = 0; x + b < n; x++)
		s->column[1][modular(s->lo[x + b], s->lo[x], b)]++;
	/*
	 * Four rounds give hi the same difference as before too often; so counted is the change of
	 * the difference.
	 */
	for (uint64_t k = 1; k <= STUDY_SHIFTS && k < a; k++) {
		for (uint64_t x = 0; x + k * b < n; x++)
			s->column[0][modular(modular(s->hi[x + k * b], s->hi[x], a), (uint32_t)k, a)]++;
		for (uint64_t d = 0; d < a; d++)
			s->column_law[d] += (double)(n - k * b) * s->half_law[0][(d + k) % a];
	}
}

/*
 * n rows in classes and rows of a table with fixed sums: chi-square has this variance if permuted
 * uniformly.
 */
static inline double table_variance(double n, double rows, double columns)
{
	return 2 * (rows - 1) * (columns - 1) * (n - rows) * (n - columns) / (n * (n - 3));
}

static inline double grid_chi_square(const struct study *s, const uint64_t *grid, double times)
{
	double side = s->grid_side, n = (double)s->n, x = 0, size[16] = {0};

	for (uint64_t i = 0; i < s->n; i++)
		size[s->cell[i]]++;
	for (uint32_t i = 0; i < side; i++)
		for (uint32_t j = 0; j < side; j++) {
			double e = times * size[i] * size[j] / n, o = (double)grid[i * s->grid_side + j];

			x += (o - e) * (o - e) / e;
		}
	return x * (n - 1) / n;
}

static inline void study_grid(struct study *s, const uint32_t *y)
{
	uint64_t grid[256] = {0};

	for (uint64_t x = 0; x < s->n; x++)
		grid[s->cell[x] * s->grid_side + s->cell[y[x]]]++;
	s->evenness += grid_chi_square(s, grid, 1);
	for (uint32_t i = 0; i < 256; i++)
		s->grid[i] += grid[i];
}

static inline void study_cycles(struct study *s, const uint32_t *y)
{
	memset(s->seen, 0, s->n);
	for (uint64_t x = 0; x < s->n; x++) {
		s->cycles += !s->seen[x];
		for (uint64_t z = x; !s->seen[z]; z = y[z])
			s->seen[z] = 1;
	}
}

static inline void study_bits(struct study *s, const uint32_t *y)
{
	for (uint64_t x = 0; x < s->n; x++)
		s->top[x] = (uint8_t)(((uint64_t)y[x] << s->bit_count) / s->n);
	for (uint32_t i = 0; s->n >> i > 1; i++) {
		uint64_t turns[256] = {0}, bit = (uint64_t)1 << i;

		for (uint64_t x = 0; x + bit < s->n; x += bit)
			for (uint64_t end = x + bit; x < end && x + bit < s->n; x++) {
				turns[s->top[x] ^ s->top[x + bit]]++;
				s->flip_trials[i]++;
			}
		for (uint32_t v = 0; v < 256; v++)
			for (uint32_t j = 0; j < s->bit_count; j++)
				s->flips[i][j] += v >> j & 1 ? turns[v] : 0;
	}
}

static inline void study_labels(struct study *s, const uint32_t *y)
{
	double n = (double)s->n, sum = 0;

	for (uint64_t first = 0; first < s->n; first += s->batch) {
		uint64_t end = first + s->batch < s->n ? first + s->batch : s->n;
		double rows = (double)(end - first), of_batch = 0;

		memset(s->class_rows, 0, s->class_count * sizeof(uint32_t));
		for (uint64_t x = first; x < end; x++) {
			uint32_t c = class_of(s, y[x]);

			of_batch += (2 * s->class_rows[c]++ + 1) / s->class_weight[c]; /* the square of the count */
		}
		sum += of_batch * n / rows - rows;
	}
	s->labels += sum * (n - 1) / n;
}

static inline void study_add(struct study *s, const uint32_t *y)
{
	study_steps(s, y);
	study_halves(s, y);
	study_grid(s, y);
	study_cycles(s, y);
	study_bits(s, y);
	study_labels(s, y);
	s->count++;
}

/* ---- what the sums say -------------------------------------------------------------- */

struct study_result {
	double statistic[STUDY_TESTS], p[STUDY_TESTS];
};

static inline void study_set(struct study_result *r, enum study_test test, double statistic, double p)
{
	r->statistic[test] = statistic;
	r->p[test] = p;
}

static inline void end_distance(const struct study *s, struct study_result *r)
{
	double d = 0, samples = (double)s->count * (double)s->n;
	uint64_t below = 0;

	for (uint64_t c = 0; c < s->distance_classes; c++) {
		/* how many distances are in this class or before it, and how many should be */
		uint64_t edge = ((c + 1) * s->n + s->distance_classes - 1) / s->distance_classes;
		double gap;

		below += s->distance[c];
		gap = fabs((double)below / samples - (double)edge / (double)s->n);
		d = gap > d ? gap : d;
	}
	study_set(r, STUDY_DISTANCE, d, p_kolmogorov(d, samples));
}

static inline void end_steps(const struct study *s, struct study_result *r)
{
	uint64_t law[256] = {0}, n = s->n;
	double x = 0, times = (double)s->count, follows = 2 * times * (double)(n - 1) / (double)n;

	study_set(r, STUDY_FIXED, (double)s->fixed, p_poisson((double)s->fixed, times));
	study_set(r, STUDY_FOLLOWS, (double)s->follows, p_poisson((double)s->follows, follows));
	for (uint64_t d = 1; d < n; d++)
		law[(d - 1) * s->step_classes / (n - 1)]++; /* each d: once in a permutation, on average */
	for (uint32_t c = 0; c < s->step_classes; c++) {
		double e = times * (double)law[c], o = (double)s->step[c];

		x += (o - e) * (o - e) / e;
	}
	study_set(r, STUDY_STEPS, x, p_chi_square(x, s->step_classes - 1));
	x = 0;
	for (int c = 0; c < 2 * STUDY_NEAR; c++)
		x += ((double)s->near[c] - times) * ((double)s->near[c] - times) / times;
	study_set(r, STUDY_NEAR_STEPS, x, p_chi_square(x, 2 * STUDY_NEAR));
}

static inline void end_halves(const struct study *s, struct study_result *r)
{
	double x = 0, y = 0, column_pairs = (double)s->count * (double)(s->n - s->b), e, o;

	for (uint64_t d = 0; d < s->a; d++) {
		e = s->half_pairs * s->half_law[0][d];
		o = (double)s->half[0][d];
		x += (o - e) * (o - e) / e;
		o = (double)s->column[0][d];
		y += (o - s->column_law[d]) * (o - s->column_law[d]) / s->column_law[d];
	}
	for (uint64_t d = 0; d < s->b; d++) {
		e = s->half_pairs * s->half_law[1][d];
		o = (double)s->half[1][d];
		x += (o - e) * (o - e) / e;
		e = column_pairs * s->half_law[1][d];
		o = (double)s->column[1][d];
		y += (o - e) * (o - e) / e;
	}
	study_set(r, STUDY_HALVES, x, p_chi_square(x, (double)(s->a + s->b - 2)));
	study_set(r, STUDY_COLUMNS, y, p_chi_square(y, (double)(s->a + s->b - 2)));
}

static inline void end_bits(const struct study *s, struct study_result *r)
{
	double x = 0, cells = 0, n = (double)s->n;

	for (uint32_t j = 0; j < s->bit_count; j++) {
		double ones = 0, p;

		for (uint64_t y = 0; y < s->n; y++)
			ones += (y << s->bit_count) / s->n >> j & 1;
		p = 2 * ones * (n - ones) / (n * (n - 1));
		for (uint32_t i = 0; s->n >> i > 1; i++) {
			double trials = (double)s->flip_trials[i], gap = (double)s->flips[i][j] - trials * p;

			x += gap * gap / (trials * p * (1 - p));
			cells++;
		}
	}
	study_set(r, STUDY_BITS, x, p_chi_square(x, cells));
}

static inline void study_end(const struct study *s, struct study_result *r)
{
	double times = (double)s->count, n = (double)s->n, freedom = (s->grid_side - 1.0) * (s->grid_side - 1.0), z;
	double rows = ceil(n / s->batch), mean = 0, variance = 0;

	end_distance(s, r);
	end_steps(s, r);
	end_halves(s, r);
	end_bits(s, r);
	z = grid_chi_square(s, s->grid, times);
	study_set(r, STUDY_GRID, z, p_chi_square(z, freedom));
	z = (s->evenness - times * freedom) / sqrt(times * table_variance(n, s->grid_side, s->grid_side));
	study_set(r, STUDY_EVENNESS, z, p_normal(z));
	for (double i = 1; i <= n; i++) {
		mean += 1 / i;
		variance += (1 - 1 / i) / i;
	}
	z = (s->cycles - times * mean) / sqrt(times * variance);
	study_set(r, STUDY_CYCLES, z, p_normal(z));
	z = (s->labels - times * (rows - 1) * (s->class_count - 1.0)) /
	    sqrt(times * table_variance(n, rows, s->class_count));
	study_set(r, STUDY_LABELS, z, p_normal(z));
}

static inline void study_free(struct study *s)
{
	free(s->half_law[0]);
	free(s->half_law[1]);
	free(s->class_weight);
	free(s->class_rows);
	free(s->hi);
	free(s->lo);
	free(s->cell);
	free(s->top);
	free(s->seen);
}

#endif
