/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.h - kernels, which the driver compiles once for each context
 *
 * A module is the text of kernels in PTX.  All that ask for the same text in the same context share
 * one module.  The context is entered for all of these calls.
 */
#ifndef SHARD_CUDA_MODULE_H
#define SHARD_CUDA_MODULE_H

#include <stdint.h>

#include "shard.h"

struct cuda_device;

/* `ptx` is a constant. */
int cuda_module_get(const struct cuda_device *d, const char *ptx, void **module, struct shard_error *err);
/* None of its kernels may be under way when the last user drops it.  NULL is fine. */
void cuda_module_drop(const struct cuda_device *d, void *module);

int cuda_kernel_find(const struct cuda_device *d, const void *module, const char *name, void **kernel,
		     struct shard_error *err);
/* Each runs some blocks at a time. */
uint32_t cuda_multiprocessors(const struct cuda_device *d);
/* The most shared memory that a block of a kernel may have, if cuda_kernel_allow() was called. */
uint32_t cuda_shared_most(const struct cuda_device *d);
/* Let the kernel have that much.  Without this it is TRANSFORM_SHARED_BYTES. */
int cuda_kernel_allow(const struct cuda_device *d, void *kernel, struct shard_error *err);
/* Queue a kernel of `across` x `down` blocks of `threads`.  Its one parameter is copied. */
int cuda_launch(const struct cuda_device *d, void *kernel, uint32_t across, uint32_t down, uint32_t threads,
		uint32_t shared_bytes, const void *parameter, void *stream, struct shard_error *err);

#endif
