/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet.h - was the machine quiet while a row was measured?
 *
 * A row that was not is marked in the table and in the JSON, with the reason.  Nobody should
 * publish its figures.
 */
#ifndef SHARD_COMMON_QUIET_H
#define SHARD_COMMON_QUIET_H

#include "bench/common/row.h"

#define QUIET_LOAD   0.5 /* of others, for each core, when the row begins */
#define QUIET_SPREAD 2.0 /* the greatest figure of a side over its least */

/*
 * What others run: threads that want a core or wait for a disk, for each core, in the mean of a
 * second in which this process sleeps.  The load average would not do: it is of a minute, and for
 * most rows tells of the row before.
 */
double quiet_load(void);

/* Wait until the load is at most QUIET_LOAD, but not longer than that.  Returns the last load. */
double quiet_wait(double seconds_most);

/* Judge a row that began at mark->load; sides 0 and `bound` count, or 0 alone if that is 0. */
void quiet_judge(struct mark *mark, const struct bench_row *row, const struct figure *f, unsigned bound);

#endif
