/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dry_run.h - the plan, shown instead of done
 */
#ifndef SHARD_REPORT_DRY_RUN_H
#define SHARD_REPORT_DRY_RUN_H

struct job;
struct scan;

/* Print the recipe, the classes, the room on disk and the first records.  Returns the exit code. */
int dry_run(const struct job *job, const struct scan *scan);

#endif
