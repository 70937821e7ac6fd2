/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h - the head of a NumPy array file
 *
 * Versions 1 to 3.  Pure: bytes in, numbers out.
 */
#ifndef SHARD_SHARDPACK_PARSE_NPY_H
#define SHARD_SHARDPACK_PARSE_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPY_DIMS_MAX	   32
#define NPY_HEAD_BYTES_MAX 65536
#define NPY_MAGIC_BYTES	   6
#define NPY_MAGIC	   "\x93NUMPY"

struct npy {
	uint32_t dtype; /* enum shard_dtype */
	bool swap;	/* big-endian */
	/*
	 * Two bytes that NumPy has no name for: '<V2', as which ml_dtypes saves bfloat16.  The
	 * dtype is SHARD_BF16, but the file does not say so.
	 */
	bool unnamed;
	bool fortran; /* the first axis changes fastest */
	uint32_t ndim;
	uint64_t shape[NPY_DIMS_MAX];
	uint64_t data_offset, data_bytes; /* no sum or product of them passes 2^62 */
};

/*
 * Read the front of a file; `size` is all of it, or NPY_HEAD_BYTES_MAX.  False, and `why` says why
 * not.
 */
bool npy_parse(const uint8_t *bytes, size_t size, struct npy *out, char *why, size_t why_bytes);

#endif
