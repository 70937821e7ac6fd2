/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_as_c.h - what CUDA adds to C, spelled out, so that kernels of libshard are compiled
 * here as they stand
 *
 * A program that runs a kernel sets the indexes of its thread; emulate.h does so for blocks of
 * threads that wait for each other.
 */
#ifndef TESTS_CUDA_CUDA_AS_C_H
#define TESTS_CUDA_CUDA_AS_C_H

#include <stdint.h>

struct emulated_dim {
	uint32_t x, y, z;
};
typedef struct {
	uint32_t x, y, z, w;
} __attribute__((aligned(16))) uint4;

static _Thread_local struct emulated_dim threadIdx, blockIdx, blockDim;

#define __global__ static
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads_)
#define __grid_constant__
#define __shared__ _Thread_local
#define __ldg(at_) (*(at_))

/* Four of the eight bytes of b and a; of a choice's four bits the highest is not used. */
static inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t choice)
{
	uint64_t both = (uint64_t)b << 32 | a;
	uint32_t out = 0;

	for (unsigned i = 0; i < 4; i++)
		out |= (uint32_t)(both >> (choice >> 4 * i & 7) * 8 & 255) << 8 * i;
	return out;
}

#endif
