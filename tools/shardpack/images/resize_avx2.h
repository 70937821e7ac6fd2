/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_avx2.h - the inner loops of the resampler with 256-bit vectors
 */
#ifndef SHARD_IMAGE_RESIZE_AVX2_H
#define SHARD_IMAGE_RESIZE_AVX2_H

#include "tools/shardpack/images/resize_passes.h"

/* NULL where the processor has no AVX2. */
const struct resize_passes *resize_passes_avx2(void);

#endif
