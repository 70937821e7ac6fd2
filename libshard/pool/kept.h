/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.h - the slabs that cannot go back yet, because batches in place lie in them
 */
#ifndef SHARD_POOL_KEPT_H
#define SHARD_POOL_KEPT_H

#include "libshard/gpu/device_slots.h"

struct kept {
	const struct device_slots *batches; /* NULL: no batch lies in a slab */
	struct {
		uint64_t first, end; /* numbers of slabs: [first, end) */
	} of[DEVICE_SLOTS_MAX];	     /* of each batch, while it is queued or lent */
};

/* Does a batch lie in this slab that is queued or lent? */
bool kept_has(const struct kept *k, uint64_t number);

#endif
