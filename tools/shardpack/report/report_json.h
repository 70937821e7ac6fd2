/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_json.h - how it went, for a person and for a program
 */
#ifndef SHARDPACK_REPORT_H
#define SHARDPACK_REPORT_H

#include "tools/shardpack/build/job.h"
#include "tools/shardpack/scan/scan.h"

struct report {
	const struct job *job;   /* its account is sorted */
	const struct scan *scan; /* NULL if this process did not list the source */
	int exit_code;
	bool sealed; /* OUT is the dataset */
	uint64_t elapsed_ns;
};

/* A few lines on stderr, the last one the counts. */
void report_tell(const struct report *r);

/* A line on stderr about files that no extension selects, if there are any. */
void report_ignored(const struct scan *scan);

/* All of it as JSON, or as a page if the name ends in .html, durably; replaces the file.  Returns the exit code. */
int report_write(const struct report *r, const char *path);

#endif /* SHARDPACK_REPORT_H */
