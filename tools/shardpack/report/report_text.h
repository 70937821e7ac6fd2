/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_text.h - how it went, in a few lines on stderr
 */
#ifndef SHARD_REPORT_REPORT_TEXT_H
#define SHARD_REPORT_REPORT_TEXT_H

struct report;
struct scan;

/* A few lines, the last one the counts. */
void report_tell(const struct report *r);

/* A line about files that no extension selects, if there are any. */
void report_ignored(const struct scan *scan);

#endif
