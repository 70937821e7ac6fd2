/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - the output of the harness: JSON on standard output, a table on standard error
 */
#ifndef SHARD_COMMON_PRINT_H
#define SHARD_COMMON_PRINT_H

#include "bench/common/row.h"

/* What is the same in all lines of a program. */
struct printing {
	const char *targets_path;
	unsigned run_count;
	unsigned process; /* which of several that measure the same rows; 0: there is only one */
};

void print_machine(const struct printing *p);
/* `bound` is the number of a side, or 0; bound_cpu is what our CPU seconds are compared with. */
void print_row(const struct printing *p, const struct bench_row *row, const struct figure *f, unsigned side_count,
	       unsigned bound, double bound_cpu, const struct mark *mark);
void print_figure(const struct printing *p, const char *name, const char *unit, double value, const struct mark *mark);
void print_skipped(const struct printing *p, const char *name, const char *reason);

#endif
