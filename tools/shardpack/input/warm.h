/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm.h - the files of a plan read ahead in order, while their records are read in another
 *
 * Records in shuffled order come from everywhere in a file, which disks hate.  If all files fit in
 * half of the memory that is available, one thread asks the system for them from front to back;
 * else records are asked for as they come, see fixed_records.c.  It only saves time: a failure here
 * never fails the pack.
 */
#ifndef SHARD_INPUT_WARM_H
#define SHARD_INPUT_WARM_H

struct plan;
struct stored;
struct warm;

/* NULL if it would not help, or cannot be started. */
struct warm *warm_start(const struct plan *plan, const struct stored *stored);
void warm_stop(struct warm *w);

#endif
