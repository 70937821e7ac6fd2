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

#include "tools/shardpack/parse/npy.h"

#define IDX_DIMS_MAX	   8
#define IDX_HEAD_BYTES_MAX (4 + 4 * IDX_DIMS_MAX)

/*
 * An array as NumPy's are: big-endian, of 1 to IDX_DIMS_MAX axes.  `size` is all of the file, or
 * IDX_HEAD_BYTES_MAX.  False, and `why` says why not.
 */
bool idx_parse(const uint8_t *bytes, size_t size, struct npy *out, char *why, size_t why_bytes);

#endif
