/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.h - the slabs that batches in place lie in, and that therefore cannot go back yet
 */
#ifndef SHARD_POOL_KEPT_H
#define SHARD_POOL_KEPT_H

#include "libshard/gpu/outlet.h"

struct kept {
	const struct outlet *batches; /* NULL: no batch lies in a slab */
	struct {
		uint64_t first, end; /* numbers of slabs: [first, end), while the batch is queued or lent */
	} of[DEVICE_SLOTS_MAX];	     /* of each slot of `batches` */
};

/* Does a batch that is queued or lent lie in this slab? */
bool kept_has(const struct kept *k, uint64_t number);

#endif
