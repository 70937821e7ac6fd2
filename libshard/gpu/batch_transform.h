/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_transform.h - transforms the images of batches, on the CPU or by a kernel on the GPU
 *
 * libshard/transform defines what a transform does.  A handle brings its kernels and its table to
 * the context of the first batch that it gets, and keeps them there.
 */
#ifndef SHARD_GPU_BATCH_TRANSFORM_H
#define SHARD_GPU_BATCH_TRANSFORM_H

#include "libshard/transform/transform.h"
#include "shard.h"
#include "shard_gpu.h"

/* Values of the loader: seed, rank and world decide what is drawn; pixels how parts are resized. */
struct batch_draws {
	uint64_t seed;
	uint32_t rank, world;
	uint32_t pixels;	/* if the options name none: enum shard_pixels */
	uint64_t epoch_records; /* of a mixture; else 0 */
};

/* What is asked of which field, checked.  Fails with ARGUMENT. */
int batch_transform_plan(struct transform_plan *out, uint32_t *field_idx, const struct shard_schema *schema,
			 const char *name, const struct shard_transform_options *opt, const struct batch_draws *draws,
			 struct shard_error *err);

/* Opens a transform of that plan, which is copied. */
int batch_transform_of_plan(struct shard_transform **out, const struct transform_plan *plan, uint32_t field_idx,
			    struct shard_error *err);

/* Both in turn. */
int batch_transform_open(struct shard_transform **out, const struct shard_schema *schema, const char *field,
			 const struct shard_transform_options *opt, const struct batch_draws *draws,
			 struct shard_error *err);

/*
 * Load the kernels into the context that `memory` of a GPU belongs to, unless that was done.  The
 * first launch does it by itself.  The context is not entered.
 */
int batch_transform_begin(struct shard_transform *f, const void *memory, struct shard_error *err);

struct cuda_device;

/*
 * Could kernels on this GPU transform such images?  NULL is any GPU.  Fails with ARGUMENT.
 */
int batch_transform_check_gpu(const struct shard_transform *f, const struct cuda_device *cuda, struct shard_error *err);

#endif
