/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_workers.h - what workers need to convert images, and slots for their results
 *
 * A ticket of workers.h is an ordinal.
 */
#ifndef SHARD_BUILD_IMAGE_WORKERS_H
#define SHARD_BUILD_IMAGE_WORKERS_H

#include <stdint.h>

struct job;
struct range;
struct workers_options;

struct image_workers;

/*
 * Room for the images of these ranges, and all of `w` but its progress and the number of threads,
 * which are there.  The ranges stay as they are while it is open.  Returns the exit code.
 */
int image_workers_open(struct image_workers **out, const struct job *job, const struct range *ranges,
		       uint64_t range_count, struct workers_options *w);

struct result *image_workers_result(struct image_workers *p, uint64_t slot);

/* When the workers have ended. */
void image_workers_close(struct image_workers *p);

#endif
