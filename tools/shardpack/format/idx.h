/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx.h - the head of an IDX file, as MNIST is distributed in
 *
 * Two zeros, the type, the number of axes, and each axis as a big-endian u32.  Pure: bytes in,
 * numbers out.
 */
#ifndef SHARD_FORMAT_IDX_H
#define SHARD_FORMAT_IDX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDX_DIMS_MAX	   8
#define IDX_HEAD_BYTES_MAX (4 + 4 * IDX_DIMS_MAX)

struct idx {
	uint32_t dtype; /* enum shard_dtype; of several bytes it is big-endian */
	uint32_t ndim;	/* 1 or more */
	uint64_t shape[IDX_DIMS_MAX];
	uint64_t data_offset, data_bytes;
};

/* `size` is all of the file, or IDX_HEAD_BYTES_MAX.  False, and `why` says why not. */
bool idx_parse(const uint8_t *bytes, size_t size, struct idx *out, char *why, size_t why_bytes);

#endif
