/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.h - a kernel that gathers a batch from rows that lie anywhere in a pool of slabs
 *
 * Slabs and batches have the same arrays, which begin at different places.  A slab may have records
 * as they lie in their shard instead: then an array is one field of these.  The parameter of the
 * kernel has all that it needs, so only the call crosses the link to the GPU.
 */
#ifndef SHARD_CUDA_GATHER_H
#define SHARD_CUDA_GATHER_H

#include <stdint.h>

#define GATHER_PIECES  32u  /* arrays that a batch can have: 8 groups and 24 fields */
#define GATHER_ROWS    820u /* of one call: its parameter has 4096 bytes */
#define GATHER_THREADS 256u
#define GATHER_PART    (16u << 10) /* bytes that a block copies from each array of its row */

struct gather_piece {
	uint64_t from_at, to_at; /* where the array begins in a slab, and in the batch */
	uint32_t bytes;		 /* of a row, and from one to the next in the batch */
	uint32_t from_step;	 /* from one to the next in a slab: more, if it has whole records there */
};

struct gather_call {
	uint64_t from, to; /* addresses of the pool and of the batch */
	uint64_t slab_bytes;
	uint32_t slab_rows, piece_count;
	uint32_t first_row, row_count; /* of the batch */
	struct gather_piece piece[GATHER_PIECES];
	uint32_t row[GATHER_ROWS]; /* of the pool: slab x slab_rows + row within it */
};

#ifndef __CUDACC__
#include "shard.h"

_Static_assert(sizeof(struct gather_call) <= 4096, "a kernel's parameters");

struct cuda_device;

/* The kernel, in one context.  It is entered for all of these calls. */
struct cuda_gather {
	void *module, *kernel;
};
int cuda_gather_open(const struct cuda_device *d, struct cuda_gather *out, struct shard_error *err);
void cuda_gather_close(const struct cuda_device *d, struct cuda_gather *g); /* it may be zeroed */

/* Queue the kernel for call->row_count rows, at most GATHER_ROWS.  The call is copied. */
int cuda_gather_launch(const struct cuda_device *d, const struct cuda_gather *g, const struct gather_call *call,
		       void *stream, struct shard_error *err);
#endif

#endif
