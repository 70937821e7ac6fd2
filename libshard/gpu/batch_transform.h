/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_transform.h - images of batches transformed, by the CPU or by a kernel on the GPU
 *
 * What a transform is lies in libshard/transform.  A handle has its kernels and its table in the context
 * of the first stream that it was given, and keeps them.
 */
#ifndef SHARD_GPU_BATCH_TRANSFORM_H
#define SHARD_GPU_BATCH_TRANSFORM_H

#include "shard.h"

/* Whose batches: this fixes what is drawn for a row. */
struct batch_draws {
	uint64_t seed;
	uint32_t rank, world;
};

int batch_transform_open(struct shard_finish **out, const struct shard_schema *schema, const char *field,
		   const struct shard_finish_options *opt, const struct batch_draws *draws, struct shard_error *err);

/*
 * Kernels count places of images in units, in 32 bits.  UNSUPPORTED if images may lie so many bytes apart,
 * at multiples of the lowest bit in `places`.
 */
int batch_transform_check_reach(uint64_t bytes, uint64_t places, struct shard_error *err);

#endif
