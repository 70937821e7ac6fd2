/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_transform.h - transforms the images of batches, on the CPU or by a kernel on the GPU
 *
 * libshard/transform defines what a transform does.  A handle brings its kernels and its table to
 * the context of the first batch that it gets, and keeps them there.
 */
#ifndef SHARD_GPU_BATCH_TRANSFORM_H
#define SHARD_GPU_BATCH_TRANSFORM_H

#include "shard.h"
#include "shard_gpu.h"

/* Values of the loader: seed, rank and world decide what is drawn; pixels how parts are resized. */
struct batch_draws {
	uint64_t seed;
	uint32_t rank, world;
	uint32_t pixels;	/* if the options name none: enum shard_pixels */
	uint64_t epoch_records; /* of a mixture; else 0 */
};

int batch_transform_open(struct shard_transform **out, const struct shard_schema *schema, const char *field,
			 const struct shard_transform_options *opt, const struct batch_draws *draws,
			 struct shard_error *err);

/*
 * Can kernels reach images that lie so many bytes apart?  They count in units, with 32 bits.  The
 * unit is the lowest bit that is set in `places`.  Fails with UNSUPPORTED.
 */
int batch_transform_check_reach(uint64_t bytes, uint64_t places, struct shard_error *err);

struct cuda_device;

/*
 * Could kernels on this GPU transform such images?  NULL is any GPU.  Fails with ARGUMENT.
 */
int batch_transform_check_gpu(const struct shard_transform *f, const struct cuda_device *cuda, struct shard_error *err);

#endif
