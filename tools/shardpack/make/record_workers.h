/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_workers.h - what workers need to fill blocks of fixed records, and slots for these
 *
 * What image_workers.h is for images.  A ticket of workers.h is a block, which never spans two
 * ranges.
 */
#ifndef SHARD_BUILD_RECORD_WORKERS_H
#define SHARD_BUILD_RECORD_WORKERS_H

#include <stdint.h>

struct job;
struct range;
struct workers_options;

struct record_workers;

int record_workers_open(struct record_workers **out, const struct job *job, const struct range *ranges,
			uint64_t range_count, struct workers_options *w);

struct fixed_block *record_workers_block(struct record_workers *p, uint64_t slot);

void record_workers_close(struct record_workers *p);

#endif
