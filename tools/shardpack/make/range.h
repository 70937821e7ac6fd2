/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range.h - neighbouring ordinals: all of a shard, or what a worker takes of them at a time
 */
#ifndef SHARD_CONVERT_RANGE_H
#define SHARD_CONVERT_RANGE_H

#include <stdint.h>

struct range {
	uint64_t first, count;
};

/* The way through ranges, ascending and none of them empty. */
struct range_walk {
	const struct range *range;
	uint64_t used; /* of that one */
};

/* At most `most` of what comes next, and nothing beyond the end of a range. */
struct range range_take(struct range_walk *w, uint64_t most);

#endif
