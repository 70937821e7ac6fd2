/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - one measurement of a benchmark
 *
 * A row has up to eight sides.  The first is ours, the others are bounds: plain loops that do the
 * same work and nothing else.
 */
#ifndef SHARD_COMMON_ROW_H
#define SHARD_COMMON_ROW_H

#include <stdbool.h>

#define BENCH_SIDES_MAX 8
#define BENCH_ASIDE	0xffffu /* the kind of a side that does less than the work: printed, and never the bound */

struct bench_side {
	const char *label;
	double (*run)(void *context); /* does the work once, and returns its figure in the row's unit */
	/* may be NULL; not timed.  False: the row is skipped, bench_skip() said why */
	bool (*prepare)(void *context);
	bool (*after)(void *context); /* likewise */
	unsigned kind; /* of bounds: the best of each kind counts, and of these the slowest is the bound */
};

struct bench_row {
	const char *name, *unit;
	bool less_is_better;	/* unit is a time */
	unsigned warm_up_count; /* runs before the ones that count */
	/* not NULL: also report the CPU seconds of each side, over cpu_work, in this unit */
	const char *cpu_unit;
	double cpu_work;
	void *context;
	struct bench_side side[BENCH_SIDES_MAX]; /* up to the first without a label */
};

/* The runs of one side. */
struct figure {
	double median, least, greatest;
	double cpu; /* CPU seconds over the row's cpu_work */
};

/* How quiet the machine was; quiet.h makes it. */
struct mark {
	double load;   /* for each core, when the row began */
	char why[256]; /* why the row is not to be published; empty if it may be */
};

#endif
