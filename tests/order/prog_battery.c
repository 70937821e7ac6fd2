/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog_battery.c - is the order as good as chance?  Many statistics, one verdict
 *
 *   prog_battery [--short] [--part NAME] [--seed N] [--long] [SUBJECT]
 *
 * SUBJECT is order, the library's own, or one of subjects.h: known good or known bad ones.  Prints
 * a table of p-values and by Holm's method the verdict at 0.001 over all of them: exit status 0 if
 * nothing is rejected, 1 if something is. --short does little of each part, --part one alone:
 * small, levels, large, tiny or windows.  --long prints each test on a line with its statistic and
 * its samples. format/ORDER.md has the table of a full run.  Not a test by itself: _battery.sh runs
 * it.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/order/report.h"
#include "tests/order/study.h"
#include "tests/order/subjects.h"

static bool in_full = true;
static const char *only_part; /* NULL: all */

static uint64_t times(uint64_t full)
{
	return in_full ? full : (full + 63) / 64;
}

/* ---- one level ------------------------------------------------------------------------ */

static void test_one_level(uint64_t n, uint64_t full_count)
{
	uint32_t *y[2] = {study_take(n * 4), study_take(n * 4)};
	uint64_t count = times(full_count);
	struct pair_study epochs, seeds, swapped;
	struct study one;

	study_begin(&one, n);
	pair_begin(&epochs, n);
	pair_begin(&seeds, n);
	pair_begin(&swapped, n);
	subject_order(y[0], n, seed0, 0);
	for (uint64_t e = 0; e < count; e++) {
		study_add(&one, y[e % 2]);
		subject_order(y[(e + 1) % 2], n, seed0, e + 1);
		pair_add(&epochs, y[e % 2], y[(e + 1) % 2]);
	}
	subject_order(y[0], n, seed0, 0);
	for (uint64_t s = 0; s < count; s++) {
		subject_order(y[(s + 1) % 2], n, seed0 + s + 1, 0);
		pair_add(&seeds, y[s % 2], y[(s + 1) % 2]);
	}
	for (uint64_t s = 0; s < count; s++) {
		subject_order(y[0], n, seed0 + s + 1, s);
		subject_order(y[1], n, seed0 + s, s + 1);
		pair_add(&swapped, y[0], y[1]);
	}
	add_study("one level", &one);
	pair_end(&epochs, "epochs e, e+1");
	pair_end(&seeds, "seeds s, s+1");
	pair_end(&swapped, "seed+1 and epoch+1");
	free(y[0]);
	free(y[1]);
}

/* ---- one level, too large to be looked at whole ------------------------------------------ */

struct slice {
	uint64_t n, b, distance[256], step[256], half[256], next[256], flips[64][8], trials[64];
	uint32_t bits;
};

static void count_difference(uint64_t *classes, uint64_t x, uint64_t y, uint64_t n)
{
	classes[(uint64_t)((unsigned __int128)(y >= x ? y - x : y + n - x) * 256 / n)]++;
}

/* From the side where the bit is 0, so that no pair is counted twice. */
static void slice_bits(struct slice *s, const struct order *o, uint64_t position, uint64_t y)
{
	for (uint32_t k = 0; k < s->bits; k++) {
		uint64_t bit = (uint64_t)1 << k, turned;

		if (position & bit)
			continue;
		turned = (uint64_t)(((unsigned __int128)y << 8) / s->n) ^
			 (uint64_t)(((unsigned __int128)order_at(o, position | bit) << 8) / s->n);
		for (uint32_t j = 0; j < 8; j++)
			s->flips[k][j] += turned >> j & 1;
		s->trials[k]++;
	}
}

static void slice_part(struct slice *s, const struct order *o, const struct order *next, uint64_t first)
{
	uint64_t y[256], z[256];

	order_fill(o, first, 1, y, 256);
	order_fill(next, first, 1, z, 256);
	for (uint64_t i = 0; i < 256; i++) {
		count_difference(s->distance, first + i, y[i], s->n);
		count_difference(s->next, y[i], z[i], s->n);
		if (i % 2) /* each value in one pair, so that pairs are independent */
			count_difference(s->step, y[i - 1], y[i], s->n);
		slice_bits(s, o, first + i, y[i]);
	}
	order_fill(o, first + s->b, 1, z, 256);
	for (uint64_t i = 0; i < 256; i++)
		count_difference(s->half, y[i], z[i], s->n);
}

static void add_classes(const char *test, uint64_t n, const uint64_t *classes)
{
	double x = 0, samples = 0;
	char what[64];

	for (int c = 0; c < 256; c++)
		samples += (double)classes[c];
	for (int c = 0; c < 256; c++)
		x += pow((double)classes[c] - samples / 256, 2) / (samples / 256);
	snprintf(what, sizeof(what), "one level, parts of n %" PRIu64, n);
	add_row(test, what, x, samples, p_chi_square(x, 255));
}

static void test_slices(uint64_t n)
{
	struct order_params p = {.kind = ORDER_ONE_LEVEL, .record_count = n, .seed = seed0};
	struct slice s = {.n = n};
	struct order o, next;
	double x = 0, trials = 0;
	char what[64];

	s.b = (uint64_t)ceil(sqrt((double)n));
	while (n >> (s.bits + 1) > 1) /* so that turning a bit of a position below n / 2 stays below n */
		s.bits++;
	for (uint64_t e = 0; e < times(512); e++) {
		p.epoch = e;
		order_init(&o, &p, subject_table);
		p.epoch = e + 1;
		order_init(&next, &p, subject_table);
		for (uint64_t i = 0; i < 8; i++)
			slice_part(&s, &o, &next, random_below(random_draw(~seed0, e * 8 + i), n / 2 - 256));
	}
	add_classes("distance", n, s.distance);
	add_classes("steps", n, s.step);
	add_classes("columns", n, s.half);
	add_classes("next epoch", n, s.next);
	for (uint32_t k = 0; k < s.bits; k++) {
		trials += (double)s.trials[k];
		for (uint32_t j = 0; j < 8; j++)
			x += pow(2 * (double)s.flips[k][j] - (double)s.trials[k], 2) / (double)s.trials[k];
	}
	snprintf(what, sizeof(what), "one level, parts of n %" PRIu64, n);
	add_row("bits", what, x, trials, p_chi_square(x, s.bits * 8));
}

/* ---- small n: every permutation as often as every other ------------------------------------ */

static void test_all_permutations(uint32_t n)
{
	uint64_t found[720] = {0}, side = in_full ? 1000 : 250;

	for (uint64_t s = 0; s < side; s++)
		for (uint64_t e = 0; e < side; e++) {
			uint32_t y[6];

			subject_order(y, n, seed0 + s, e);
			found[rank_of(y, n)]++;
		}
	add_ranks("one level", n, found);
}

/* Which record stands where, for small n over many epochs. */
static void test_position_by_record(uint32_t n)
{
	uint64_t count = times(64000), *found = study_take((size_t)n * n * 8);
	uint32_t y[128];
	double x = 0, e = (double)count / n;
	char what[64];

	for (uint64_t i = 0; i < count; i++) {
		subject_order(y, n, seed0, i);
		for (uint32_t p = 0; p < n; p++)
			found[p * n + y[p]]++;
	}
	for (uint32_t i = 0; i < n * n; i++)
		x += pow((double)found[i] - e, 2) / e;
	x *= (n - 1.0) / n;
	snprintf(what, sizeof(what), "position by record, n %u", n);
	add_row("grid", what, x, (double)count, p_chi_square(x, (n - 1.0) * (n - 1.0)));
	free(found);
}

/*
 * ---- two levels -------------------------------------------------------------------------------
 */

struct shape {
	uint64_t run_records, window_runs, lanes, windows, longer, epochs;
	uint64_t short_epochs; /* 0: not in the short run */
};

static struct order_params params_of(const struct shape *h, uint64_t seed, uint64_t epoch)
{
	uint64_t runs = h->lanes * (h->windows * h->window_runs + h->longer);

	return (struct order_params){.kind = ORDER_TWO_LEVELS,
				     .record_count = runs * h->run_records + h->run_records / 2,
				     .seed = seed,
				     .epoch = epoch,
				     .run_records = h->run_records,
				     .phase_unit_records = 1,
				     .window_runs = (uint32_t)h->window_runs,
				     .lane_count = (uint32_t)h->lanes};
}

static void load_windows(struct windows *w, const struct shape *h, uint64_t seed, uint64_t epoch)
{
	struct order_params p = params_of(h, seed, epoch);

	subject_windows(w, &p);
}

/* Window i with window (i + away) of the same epoch. */
static void pair_windows(struct pair_study *s, const struct windows *w, uint64_t away)
{
	for (uint64_t i = 0; i + away < w->count; i++)
		pair_add(s, w->y + i * w->n, w->y + (i + away) * w->n);
}

static void test_windows(const struct shape *h)
{
	struct windows now = {.y = NULL}, other = {.y = NULL};
	struct pair_study lane, lanes, far, epochs, seeds;
	struct study one;

	for (uint64_t e = 0; e < (in_full ? h->epochs : h->short_epochs); e++) {
		load_windows(&now, h, seed0, e);
		if (!e) {
			study_begin(&one, now.n);
			pair_begin(&lane, now.n);
			pair_begin(&lanes, now.n);
			pair_begin(&far, now.n);
			pair_begin(&epochs, now.n);
			pair_begin(&seeds, now.n);
		}
		for (uint64_t i = 0; i < now.count; i++)
			study_add(&one, now.y + i * now.n);
		pair_windows(&lane, &now, h->lanes);
		pair_windows(&lanes, &now, 1);
		pair_windows(&far, &now, now.count / 2);
		load_windows(&other, h, seed0, e + 1);
		for (uint64_t i = 0; i < now.count; i++)
			pair_add(&epochs, now.y + i * now.n, other.y + i * now.n);
		load_windows(&other, h, seed0 + 1, e);
		for (uint64_t i = 0; i < now.count; i++)
			pair_add(&seeds, now.y + i * now.n, other.y + i * now.n);
	}
	add_study("a window", &one);
	pair_end(&lane, "windows v, v+1");
	pair_end(&lanes, "lanes l, l+1");
	pair_end(&far, "windows far apart");
	pair_end(&epochs, "window, epochs e, e+1");
	pair_end(&seeds, "window, seeds s, s+1");
	windows_free(&now);
	windows_free(&other);
}

/* Windows of a handful of records: every permutation, of one window and of the quotient of two. */
static void test_tiny_windows(uint32_t n)
{
	const struct shape h = {1, n, 4, 64, 0, 0, 0};
	uint64_t found[2][720] = {{0}};
	struct windows w = {.y = NULL};

	for (uint64_t e = 0; e < (in_full ? 4000 : 250); e++) {
		load_windows(&w, &h, seed0, e);
		for (uint64_t i = 0; i < w.count; i++) {
			const uint32_t *y = w.y + i * n, *z = w.y + (i + 1) % w.count * n;
			uint32_t inverse[6], quotient[6];

			invert(inverse, y, n);
			for (uint32_t x = 0; x < n; x++)
				quotient[x] = inverse[z[x]];
			found[0][rank_of(y, n)]++;
			if (i % 2)
				found[1][rank_of(quotient, n)]++;
		}
	}
	add_ranks("a window", n, found[0]);
	add_ranks("two windows", n, found[1]);
	windows_free(&w);
}

/*
 * Pairs of one class in a batch, of class-sorted records: the mean over epochs against the exact
 * expectation.  Two rows of a batch are from one run with probability (r - 1) / (W - 1) if from one
 * window; other runs are exchangeable.
 */
static void test_batches(uint64_t r, uint64_t w, uint64_t lanes, uint64_t batch, uint64_t classes)
{
	const struct shape h = {r, w, lanes, 16, 0, 0, 0};
	struct order_params p = params_of(&h, seed0, 0);
	uint64_t n = p.record_count -= r / 2, epochs = times(512), share = batch / lanes;
	double other = ((double)n / r / classes - 1) / ((double)n / r - 1), same = (r - 1.0) / (w * r - 1.0), want, t;
	double sum = 0, squares = 0, sd, batches = (double)n / batch;
	uint64_t *records = study_take(batch * 8);
	uint32_t *rows_of = study_take(classes * 4);
	struct order o;
	char what[64];

	p.phase_unit_records = 0; /* so that a run has one class */
	for (uint64_t e = 0; e < epochs; e++) {
		double pairs = 0;

		p.epoch = e;
		order_init(&o, &p, subject_table);
		for (uint64_t first = 0; first < n; first += batch) {
			memset(rows_of, 0, classes * 4);
			order_fill(&o, first, 1, records, batch);
			for (uint64_t i = 0; i < batch; i++)
				pairs += rows_of[records[i] * classes / n]++;
		}
		sum += pairs;
		squares += pairs * pairs;
	}
	want = batches * ((double)(lanes * share * (share - 1) / 2) * (same + (1 - same) * other) +
			  (double)(share * share * lanes * (lanes - 1) / 2) * other);
	sd = sqrt((squares - sum * sum / (double)epochs) / ((double)epochs - 1));
	t = (sum / (double)epochs - want) / (sd / sqrt((double)epochs));
	snprintf(what, sizeof(what), "two levels, r %" PRIu64 " w %" PRIu64 " L %" PRIu64 " B %" PRIu64, r, w, lanes,
		 batch);
	add_row("batches", what, t, (double)epochs * (double)n, p_normal(t));
	free(records);
	free(rows_of);
}

/*
 * ---- all of it
 * ------------------------------------------------------------------------------------
 */

static bool part(const char *name)
{
	return !only_part || !strcmp(only_part, name);
}

static void run_all(void)
{
	static const uint64_t sizes[][2] = {{10007, 1024}, {65537, 512}, {66049, 512}, {131072, 256}, {1281167, 32}};
	static const uint32_t records[] = {10, 30, 100};
	static const struct shape shapes[] = {
		{1, 64, 8, 64, 0, 256, 32}, {4, 64, 4, 64, 0, 128, 0},	 {16, 64, 4, 32, 0, 64, 0},
		{8, 512, 4, 32, 0, 32, 1},  {10, 2000, 4, 18, 9, 32, 1}, {16, 4096, 4, 8, 0, 8, 0},
		{14, 5000, 4, 8, 0, 8, 0},
	};

	for (uint32_t n = 3; n <= 6 && part("small"); n++)
		test_all_permutations(n);
	for (size_t i = 0; i < 3 && part("small"); i++)
		test_position_by_record(records[i]);
	for (size_t i = 0; i < (in_full ? 5 : 2) && part("levels"); i++)
		test_one_level(sizes[i][0], sizes[i][1]);
	if (part("large") && subject == SUBJECT_ORDER) {
		test_slices(1000000007);
		test_slices((uint64_t)1 << 40);
		test_slices(PERMUTATION_N_MAX);
		test_batches(16, 256, 4, 256, 64);
		test_batches(128, 40, 8, 256, 64);
	}
	for (uint32_t n = 3; n <= 6 && part("tiny"); n++)
		test_tiny_windows(n);
	for (size_t i = 0; i < 7 && part("windows"); i++)
		if (in_full || shapes[i].short_epochs)
			test_windows(&shapes[i]);
}

int main(int argc, char **argv)
{
	enum subject which = SUBJECT_ORDER;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--short")) {
			in_full = false;
		} else if (!strcmp(argv[i], "--long")) {
			in_long = true;
		} else if (!strcmp(argv[i], "--part") && i + 1 < argc) {
			only_part = argv[++i];
		} else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			seed0 = strtoull(argv[++i], NULL, 10);
		} else {
			for (which = SUBJECT_ORDER; which < SUBJECT_COUNT; which++)
				if (!strcmp(argv[i], subject_names[which]))
					break;
			if (which == SUBJECT_COUNT)
				subject_die("unknown word; see the first lines of tests/order/prog_battery.c");
		}
	}
	subject_begin(which, seed0);
	if (!in_long) {
		printf("%-32s %8s %7s", "", "n", "count");
		for (int t = 0; t < STUDY_TESTS; t++)
			printf(" %7.7s", study_names[t]);
		printf("\n");
	}
	run_all();
	print_others();
	if (!row_count)
		subject_die("nothing was tested: no such part");
	return verdict() ? 1 : 0;
}
