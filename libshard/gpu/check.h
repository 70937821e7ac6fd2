/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - a kernel that hashes units in the memory of a GPU, and compares them with leaf hashes
 *
 * The hash is XXH3-64 with seed 0 and the default secret, as checksum64() computes it.  The
 * algorithm is that of xxHash 0.8 by Yann Collet (BSD 2-Clause).  The code is our own.
 *
 * All units of a call have the same length, and lie at equal distances, as the rows of a batch do.
 * The shorter last unit of a shard needs a call for itself.
 *
 * The parameter of the kernel has the expected hash of each row, so 8 bytes a row cross the link to
 * the GPU, with the call itself.  Indices into a table on the GPU would be no shorter as 64-bit
 * numbers.  The table would also have to be sent first, and would use 8 bytes a unit of the GPU's
 * memory, for all units of a dataset.
 */
#ifndef SHARD_CUDA_CHECK_H
#define SHARD_CUDA_CHECK_H

#include <stdint.h>

#define CHECK_ROWS    496u /* of one call: a parameter has 4096 bytes at most */
#define CHECK_THREADS 64u
#define CHECK_WARP    32u
#define CHECK_SHORT   240u /* bytes: units up to this length have a thread each, longer ones a warp */

struct check_call {
	uint64_t from;	/* address of the unit of row 0; any */
	uint64_t step;	/* bytes from one unit to the next; any */
	uint64_t bytes; /* of each unit; any.  No byte outside of the units is read, and none may change meanwhile */
	uint64_t to;	/* address of row_count results: a multiple of 16 */
	uint32_t row_count;
	uint32_t number;		       /* comes back with each result */
	uint32_t skip[(CHECK_ROWS + 31) / 32]; /* bit i % 32 of word i / 32: row i is not to be read */
	uint64_t want[CHECK_ROWS];	       /* leaf hashes */
};

enum { CHECK_SOUND = 1, CHECK_DAMAGED, CHECK_SKIPPED };

/*
 * What the kernel stores for each row.  It may be looked at when the stream is past the kernel:
 * before that, `number` may be there and the rest not, since a store of 16 bytes is not promised to
 * come as one.  A caller that gives each call another number cannot take an older result, of a kernel
 * that did not run, for a new one.
 */
struct check_result {
	uint64_t hash; /* of the bytes that are there; 0 for a row that is skipped */
	uint32_t verdict;
	uint32_t number;
};

#ifndef __CUDACC__
#include "shard.h"

_Static_assert(sizeof(struct check_call) <= 4096, "a kernel's parameters");
_Static_assert(sizeof(struct check_result) == 16, "a thread stores it at once");

struct cuda_device;

/* The kernels, in one context.  It is entered for all of these calls. */
struct cuda_check {
	void *module, *of_long, *of_short;
};
int cuda_check_open(const struct cuda_device *d, struct cuda_check *out, struct shard_error *err);
void cuda_check_close(const struct cuda_device *d, struct cuda_check *c); /* it may be zeroed */

/* Queue the kernel for call->row_count rows, 1 to CHECK_ROWS.  The call is copied. */
int cuda_check_launch(const struct cuda_device *d, const struct cuda_check *c, const struct check_call *call,
		      void *stream, struct shard_error *err);
#endif

#endif
