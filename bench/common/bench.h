/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - measure our way and the plain ways side by side, and print how they compare
 *
 * A row has up to eight sides.  The first is ours, the others are bounds: plain loops that do the same work and nothing
 * else.  Every run measures each side once, in turn, so that what disturbs the machine disturbs all of them.  A side's
 * figure is the median of its runs.
 *
 * Standard output gets one line of JSON per measurement, standard error a table for people.  bench/README.md explains both.
 */
#ifndef BENCH_COMMON_BENCH_H
#define BENCH_COMMON_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_SIDES_MAX 8
#define BENCH_RUNS_MAX	99

struct bench;

struct bench_side {
	const char *label;
	double (*run)(void *context); /* does the work once, and returns its figure in the row's unit */
	bool (*prepare)(void *context); /* may be NULL; not timed.  False: the row is skipped, bench_skip() said why */
	bool (*after)(void *context);	/* likewise */
	unsigned kind; /* of bounds: the best of each kind counts, and of these the slowest is the bound */
};

struct bench_row {
	const char *name, *unit;
	bool less_is_better;	/* unit is a time */
	unsigned warm_up_count; /* runs before those that count */
	const char *cpu_unit;	/* not NULL: also report the CPU seconds of each side, over cpu_work, in this unit */
	double cpu_work;
	void *context;
	struct bench_side side[BENCH_SIDES_MAX]; /* up to the first without a label */
};

/*
 * Take the command line: --runs N, --only PATTERN, --dir DIR, --corpus DIR, --targets FILE, --no-machine.  Never NULL:
 * what is wrong ends the program with 2.
 */
struct bench *bench_open(int argc, char **argv);
int bench_close(struct bench *b); /* what main returns */

/* Is this row asked for?  The pattern of --only is a part of its name, or a wildcard that matches all of it. */
bool bench_wants(const struct bench *b, const char *name);

const char *bench_dir(const struct bench *b);	 /* a folder on a disk, for files of any size */
const char *bench_corpus(const struct bench *b); /* NULL: not given */
const char *bench_build(const struct bench *b);	 /* the folder that holds bench/ and bin/ */

/* Measure and print a row, if it is wanted.  Returns our figure; 0 if there is none. */
double bench_run(struct bench *b, const struct bench_row *row);

/* Print, if it is wanted, a row of one figure that follows from the median of another. */
void bench_figure(struct bench *b, const char *name, const char *unit, double value);

/* Say why a wanted row cannot run. */
void bench_skipped(struct bench *b, const char *name, const char *reason);

/* For prepare, run and after: why the row cannot go on.  Returns false. */
__attribute__((format(printf, 1, 2))) bool bench_skip(const char *format, ...);
const char *bench_skip_reason(void); /* the last one */

/* Print a line for people beneath the row. */
__attribute__((format(printf, 1, 2))) void bench_note(const char *format, ...);

/* Something is wrong that is no measurement: say so and exit with 1. */
__attribute__((format(printf, 1, 2), noreturn)) void bench_die(const char *format, ...);

/* ---- small services ---- */

double bench_seconds(void); /* monotonic */
double bench_cpu_seconds(void); /* of this process and the children it has waited for */
void *bench_memory(size_t bytes); /* aligned to 2 MiB, huge pages asked for, touched; ends the program if there is none */
size_t bench_llc_bytes(void);	  /* the largest cache; 32 MiB if the machine does not say */
void bench_remove(char *path);	  /* a file, or a folder with all in it; it is fine if there is none */
void bench_random_fill(void *out, size_t bytes, uint64_t seed); /* a multiple of 8 */

/* Run `work` in that many threads, this one included, until all have ended. */
void bench_threads(unsigned count, void (*work)(void *context), void *context);

#ifdef __cplusplus
}
#endif

#endif
