/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range.c - neighbouring ordinals: all of a shard, or what a worker takes of them at a time
 */
#include "tools/shardpack/make/make.h"

struct range range_take(struct range_walk *w, uint64_t most)
{
	uint64_t left = w->range->count - w->used;
	struct range out = {w->range->first + w->used, left < most ? left : most};

	w->used += out.count;
	if (w->used == w->range->count)
		*w = (struct range_walk){.range = w->range + 1};
	return out;
}
