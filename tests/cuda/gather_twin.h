/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_twin.h - the pool's kernel, gather.cu itself, compiled as C and run thread by thread by
 * the fake driver
 */
#ifndef TESTS_CUDA_GATHER_TWIN_H
#define TESTS_CUDA_GATHER_TWIN_H

#include "tests/cuda/cuda_as_c.h"
#include "tests/cuda/trainer.h"

#ifndef UNROLL
#define UNROLL
#endif
#include "libshard/gpu/gather.cu"

static inline void twin_gather(const struct fake_kernel_call *c)
{
	struct gather_call call;

	memcpy(&call, c->arguments[0], sizeof(call));
	call.from = (uintptr_t)fake->at(call.from);
	call.to = (uintptr_t)fake->at(call.to);
	if (!call.from || !call.to)
		return; /* the look at the batch sees that nothing came */
	blockDim = (struct emulated_dim){c->block[0], c->block[1], 1};
	for (blockIdx.x = 0; blockIdx.x < c->grid[0]; blockIdx.x++)
		for (blockIdx.y = 0; blockIdx.y < c->grid[1]; blockIdx.y++)
			for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
				gather_rows(call);
}

static inline void gather_twin_open(void)
{
	static const size_t bytes[] = {sizeof(struct gather_call)};

	fake->kernel("gather_rows", twin_gather, 1, bytes);
}

#endif
