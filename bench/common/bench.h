/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - measure our way and the plain ways side by side, and print how they compare
 *
 * A row has up to eight sides.  The first is ours, the others are bounds: plain loops that do the
 * same work and nothing else.  Every run measures each side once, in turn, so that a disturbance of
 * the machine disturbs all of them.  A side's figure is the median of its runs.
 *
 * Standard output gets one line of JSON per measurement, standard error a table for people.
 * bench/README.md explains both.
 */
#ifndef SHARD_COMMON_BENCH_H
#define SHARD_COMMON_BENCH_H

#include <stdbool.h>

#include "bench/common/row.h"
#include "bench/common/say.h"
#include "bench/common/service.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_RUNS_MAX 99

struct bench;

/*
 * Take the command line: --runs N, --only PATTERN, --dir DIR, --corpus DIR, --targets FILE,
 * --process N, --wait SECONDS, --no-machine.  Never NULL: a wrong one ends the program with 2.
 */
struct bench *bench_open(int argc, char **argv);
int bench_close(struct bench *b); /* returns main's exit code */

/*
 * Is this row asked for?  The pattern of --only is a part of its name, or a wildcard that matches
 * all of it.
 */
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

#ifdef __cplusplus
}
#endif

#endif
