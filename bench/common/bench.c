/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c - the command line, the runs in turn, and their medians; print.c prints them
 */
#include "bench/common/bench.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/print.h"
#include "bench/common/quiet.h"

#define RUNS_DEFAULT 7

struct bench {
	const char *only, *dir, *corpus;
	char build[4096];
	struct printing printing;
	double wait_seconds; /* before each row, for a quiet machine */
	struct mark mark;    /* of the last row */
};

/* ---- the command line ---- */

static void misuse(const char *program, const char *what)
{
	fprintf(stderr,
		"%s: %s\nusage: %s [--runs N] [--only PATTERN] [--dir DIR] [--corpus DIR] [--targets FILE] "
		"[--process N] [--wait SECONDS] [--no-machine]\n",
		program, what, program);
	exit(2);
}

/* BUILD, from BUILD/bench/PROGRAM. */
static void find_build(struct bench *b, const char *program)
{
	char *slash;

	snprintf(b->build, sizeof(b->build), "%s", program);
	slash = strrchr(b->build, '/');
	snprintf(slash ? slash : b->build, 4, slash ? "/.." : "..");
}

/* A number from 1 to `most`. */
static unsigned take_count(const char *program, const char *value, unsigned most, const char *what)
{
	unsigned long n = strtoul(value, NULL, 10);

	if (!n || n > most)
		misuse(program, what);
	return (unsigned)n;
}

static void take_option(struct bench *b, const char *program, const char *name, const char *value)
{
	if (!strcmp(name, "--runs"))
		b->printing.run_count = take_count(program, value, BENCH_RUNS_MAX, "--runs must be 1 to 99");
	else if (!strcmp(name, "--process"))
		b->printing.process = take_count(program, value, 99, "--process must be 1 to 99");
	else if (!strcmp(name, "--wait"))
		b->wait_seconds = take_count(program, value, 3600, "--wait must be 1 to 3600 seconds");
	else if (!strcmp(name, "--only"))
		b->only = *value ? value : NULL;
	else if (!strcmp(name, "--dir"))
		b->dir = value;
	else if (!strcmp(name, "--corpus"))
		b->corpus = *value ? value : NULL;
	else if (!strcmp(name, "--targets"))
		b->printing.targets_path = value;
	else
		misuse(program, "unknown option");
}

struct bench *bench_open(int argc, char **argv)
{
	struct bench *b = calloc(1, sizeof(*b));
	bool machine = true;

	if (!b)
		bench_die("out of memory");
	b->dir = ".";
	b->printing.targets_path = "bench/TARGETS";
	b->printing.run_count = RUNS_DEFAULT;
	find_build(b, argv[0]);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--no-machine")) {
			machine = false;
			continue;
		}
		if (i + 1 == argc)
			misuse(argv[0], "an option without a value, or an unknown one");
		take_option(b, argv[0], argv[i], argv[i + 1]);
		i++;
	}
	if (machine)
		print_machine(&b->printing);
	return b;
}

int bench_close(struct bench *b)
{
	free(b);
	return fflush(stdout) ? 1 : 0;
}

bool bench_wants(const struct bench *b, const char *name)
{
	return !b->only || strstr(name, b->only) || !fnmatch(b->only, name, 0);
}

const char *bench_dir(const struct bench *b)
{
	return b->dir;
}

const char *bench_corpus(const struct bench *b)
{
	return b->corpus;
}

const char *bench_build(const struct bench *b)
{
	return b->build;
}

/* ---- runs ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static unsigned side_count(const struct bench_row *row)
{
	unsigned n = 0;

	while (n < BENCH_SIDES_MAX && row->side[n].label)
		n++;
	return n;
}

/* One run of one side; false if the row must be skipped. */
static bool run_side(const struct bench_row *row, const struct bench_side *side, double *value, double *cpu)
{
	double begin;

	if (side->prepare && !side->prepare(row->context))
		return false;
	begin = bench_cpu_seconds();
	*value = side->run(row->context);
	*cpu = bench_cpu_seconds() - begin;
	return !side->after || side->after(row->context);
}

static bool better(const struct bench_row *row, double a, double b)
{
	return row->less_is_better ? a < b : a > b;
}

/* The number of the side that is the bound; 0 if there is none. */
static unsigned choose_bound(const struct bench_row *row, const struct figure *f, unsigned sides)
{
	unsigned chosen = 0;

	for (unsigned i = 1; i < sides; i++) {
		bool best = row->side[i].kind != BENCH_ASIDE;

		for (unsigned k = 1; k < sides; k++)
			if (row->side[k].kind == row->side[i].kind && better(row, f[k].median, f[i].median))
				best = false;
		if (best && (!chosen || better(row, f[chosen].median, f[i].median)))
			chosen = i;
	}
	return chosen;
}

/*
 * What our CPU seconds are compared with: those of the bound.  If there are bounds of several
 * kinds, all of their work has to be done: then it is the least of each kind, added up.
 */
static double bound_cpu(const struct bench_row *row, const struct figure *f, unsigned sides, unsigned bound)
{
	double sum = 0;
	bool several = false;

	for (unsigned i = 1; i < sides; i++) {
		bool least = row->side[i].kind != BENCH_ASIDE;

		for (unsigned k = 1; least && k < sides; k++)
			if (row->side[k].kind == BENCH_ASIDE)
				continue;
			else if (row->side[k].kind != row->side[i].kind)
				several = true;
			else if (f[k].cpu < f[i].cpu || (f[k].cpu == f[i].cpu && k < i))
				least = false;
		sum += least ? f[i].cpu : 0;
	}
	return several ? sum : bound ? f[bound].cpu : 0;
}

static void summarize(struct figure *f, double *values, double *cpu, unsigned count, double cpu_work)
{
	f->median = median(values, count);
	f->least = values[0];
	f->greatest = values[count - 1];
	f->cpu = cpu_work > 0 ? median(cpu, count) / cpu_work : 0;
}

double bench_run(struct bench *b, const struct bench_row *row)
{
	static double values[BENCH_SIDES_MAX][BENCH_RUNS_MAX], cpu[BENCH_SIDES_MAX][BENCH_RUNS_MAX];
	struct figure figure[BENCH_SIDES_MAX];
	unsigned sides = side_count(row), bound;

	if (!bench_wants(b, row->name))
		return 0;
	b->mark.load = quiet_wait(b->wait_seconds);
	for (unsigned run = 0; run < b->printing.run_count + row->warm_up_count; run++) {
		unsigned kept = run < row->warm_up_count ? 0 : run - row->warm_up_count;

		for (unsigned i = 0; i < sides; i++) {
			unsigned s = (run + i) % sides; /* nobody always comes first */

			if (!run_side(row, &row->side[s], &values[s][kept], &cpu[s][kept])) {
				print_skipped(&b->printing, row->name, bench_skip_reason());
				return 0;
			}
		}
	}
	for (unsigned i = 0; i < sides; i++)
		summarize(&figure[i], values[i], cpu[i], b->printing.run_count, row->cpu_unit ? row->cpu_work : 0);
	bound = choose_bound(row, figure, sides);
	quiet_judge(&b->mark, row, figure, bound);
	print_row(&b->printing, row, figure, sides, bound, bound_cpu(row, figure, sides, bound), &b->mark);
	return figure[0].median;
}

void bench_figure(struct bench *b, const char *name, const char *unit, double value)
{
	if (bench_wants(b, name))
		print_figure(&b->printing, name, unit, value, &b->mark);
}

void bench_skipped(struct bench *b, const char *name, const char *reason)
{
	if (bench_wants(b, name))
		print_skipped(&b->printing, name, reason);
}
