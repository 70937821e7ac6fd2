/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the battery's rows: what was tested, on what, its p-value; the table that is printed,
 * and the verdict
 */
#ifndef TESTS_ORDER_REPORT_H
#define TESTS_ORDER_REPORT_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/order/study.h"
#include "tests/order/subjects.h"

#define LEVEL	 0.001
#define ROWS_MAX 4096

struct row {
	const char *test;
	char what[64];
	double statistic, samples, p;
	bool in_table; /* of study_add: printed when it was made */
};

static const char *const study_names[STUDY_TESTS] = {"distance", "fixed", "follow",   "steps",	"near", "halves",
						     "columns",	 "grid",  "evenness", "cycles", "bits", "labels"};

static struct row rows[ROWS_MAX];
static size_t row_count;
static uint64_t seed0 = 1, permutations_seen;
static bool in_long; /* a line for each test */

static inline void add_row(const char *test, const char *what, double statistic, double samples, double p)
{
	struct row *r = &rows[row_count++];

	if (row_count == ROWS_MAX)
		subject_die("more rows than ROWS_MAX");
	*r = (struct row){.test = test, .statistic = statistic, .samples = samples, .p = p};
	snprintf(r->what, sizeof(r->what), "%s", what);
	if (in_long)
		printf("%-10s %-44s %14.6g %12.0f %9.2g\n", test, what, statistic, samples, p);
}

static inline void add_study(const char *what, struct study *s)
{
	struct study_result r;

	study_end(s, &r);
	if (!in_long)
		printf("%-32s %8" PRIu64 " %7" PRIu64, what, s->n, s->count);
	for (int t = 0; t < STUDY_TESTS; t++) {
		char named[64];

		snprintf(named, sizeof(named), "%s, n %" PRIu64, what, s->n);
		add_row(study_names[t], named, r.statistic[t], (double)s->n * (double)s->count, r.p[t]);
		rows[row_count - 1].in_table = true;
		if (!in_long)
			printf(" %7.2g", r.p[t]);
	}
	if (!in_long)
		printf("\n");
	study_free(s);
	fflush(stdout);
}

/* inverse[y[x]] = x, and so a proof that y is a permutation. */
static inline void invert(uint32_t *inverse, const uint32_t *y, uint64_t n)
{
	memset(inverse, 0xff, n * sizeof(*inverse));
	for (uint64_t x = 0; x < n; x++) {
		if (y[x] >= n || inverse[y[x]] != UINT32_MAX)
			subject_die("not a permutation");
		inverse[y[x]] = (uint32_t)x;
	}
	permutations_seen++;
}

/* Two permutations as a study of their quotients: of places, y^-1 z, and of values, z y^-1. */
struct pair_study {
	struct study places, values;
	uint32_t *inverse, *quotient;
};

static inline void pair_begin(struct pair_study *s, uint64_t n)
{
	study_begin(&s->places, n);
	study_begin(&s->values, n);
	s->inverse = study_take(n * sizeof(uint32_t));
	s->quotient = study_take(n * sizeof(uint32_t));
}

static inline void pair_add(struct pair_study *s, const uint32_t *y, const uint32_t *z)
{
	uint64_t n = s->places.n;

	invert(s->inverse, y, n);
	for (uint64_t x = 0; x < n; x++)
		s->quotient[x] = s->inverse[z[x]];
	study_add(&s->places, s->quotient);
	for (uint64_t x = 0; x < n; x++)
		s->quotient[x] = z[s->inverse[x]];
	study_add(&s->values, s->quotient);
}

/* Prints and frees. */
static inline void pair_end(struct pair_study *s, const char *what)
{
	char named[64];

	snprintf(named, sizeof(named), "%s, places", what);
	add_study(named, &s->places);
	snprintf(named, sizeof(named), "%s, values", what);
	add_study(named, &s->values);
	free(s->inverse);
	free(s->quotient);
}

/* Number of a permutation among all of n, in the order of a dictionary. */
static inline uint32_t rank_of(const uint32_t *y, uint32_t n)
{
	uint32_t rank = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t smaller = 0;

		for (uint32_t j = i + 1; j < n; j++)
			smaller += y[j] < y[i];
		rank = rank * (n - i) + smaller;
	}
	return rank;
}

static inline void add_ranks(const char *what, uint32_t n, const uint64_t *found)
{
	double x = 0, samples = 0;
	uint32_t all = 1;
	char named[64];

	for (uint32_t i = 2; i <= n; i++)
		all *= i;
	for (uint32_t i = 0; i < all; i++)
		samples += (double)found[i];
	for (uint32_t i = 0; i < all; i++)
		x += pow((double)found[i] - samples / all, 2) / (samples / all);
	snprintf(named, sizeof(named), "%s, n %u", what, n);
	add_row("all n!", named, x, samples, p_chi_square(x, all - 1));
}

static inline int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline size_t verdict(void)
{
	double p[ROWS_MAX];
	size_t rejected;

	for (size_t i = 0; i < row_count; i++)
		p[i] = rows[i].p;
	qsort(p, row_count, sizeof(*p), ascending);
	rejected = holm_rejected(p, row_count, LEVEL);
	for (size_t i = 0; i < row_count; i++)
		if (rejected && rows[i].p <= p[rejected - 1])
			printf("rejected: %s of %s: p %.2g\n", rows[i].test, rows[i].what, rows[i].p);
	printf("%s, seed %" PRIu64 ": %zu tests, smallest p %.2g, limit %.2g; %zu rejected; %" PRIu64 " permutations\n",
	       subject_names[subject], seed0, row_count, p[0], LEVEL / (double)row_count, rejected, permutations_seen);
	return rejected;
}

static inline void print_others(void)
{
	for (size_t i = 0; i < row_count && !in_long; i++) {
		if (!rows[i].in_table)
			printf("%-10s %-50s %12.6g %10.0f %7.2g\n", rows[i].test, rows[i].what, rows[i].statistic,
			       rows[i].samples, rows[i].p);
	}
}

#endif
