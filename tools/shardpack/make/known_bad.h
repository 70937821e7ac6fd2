/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_bad.h - inputs that a plan knows to be bad, before any of them is converted
 *
 * Both functions print them in source order, as many as are shown of bad inputs, and return the
 * exit code.
 */
#ifndef SHARD_BUILD_KNOWN_BAD_H
#define SHARD_BUILD_KNOWN_BAD_H

#include <stdbool.h>

struct job;
struct source_times;

/*
 * Bad inputs are an error, so no dataset can come of the plan.  Enter those that are known and look
 * at all others, so that everything is said at once; write nothing.  `times` is that of a job.
 */
int known_bad_look(const struct job *job, const struct source_times *times);

/* Of a plan that is not built now: enter them.  If they are an error, say so and set *told. */
int known_bad_judge(const struct job *job, bool *told);

#endif
