/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the result of a run, from which reports are made
 */
#ifndef SHARD_REPORT_REPORT_H
#define SHARD_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct scan;

struct report {
	const struct job *job;	 /* its account is sorted */
	const struct scan *scan; /* NULL if this process did not list the source */
	int exit_code;
	bool planned; /* nothing else was to be done */
	bool sealed;  /* OUT is the dataset */
	uint64_t elapsed_ns;
};

#endif
