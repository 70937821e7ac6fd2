/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - the output of the harness: JSON on standard output, a table on standard error
 */
#ifndef SHARD_COMMON_PRINT_H
#define SHARD_COMMON_PRINT_H

#include "bench/common/row.h"

/* The runs of one side. */
struct figure {
	double median, least, greatest;
	double cpu; /* CPU seconds over the row's cpu_work */
};

void print_machine(void);
void print_row(const struct bench_row *row, const struct figure *f, unsigned side_count, unsigned bound,
	       unsigned run_count, const char *targets_path);
void print_figure(const char *name, const char *unit, double value, unsigned run_count, const char *targets_path);
void print_skipped(const char *name, const char *reason);

#endif
