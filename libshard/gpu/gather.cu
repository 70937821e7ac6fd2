/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.cu - the kernel of gather.h: it copies rows of a pool to the arrays of a batch
 *
 * A block copies a part of one row, GATHER_PART bytes of each of its arrays.  Each thread copies 16
 * bytes at a time if all addresses allow it, as they do for images.  The code is both C11 and CUDA,
 * so tests run it on a CPU.  make_ptx.sh makes gather.ptx from it.
 */
#include "libshard/gpu/gather.h"

#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
extern "C" {
#endif

/* So many loads of a thread are under way together: with 16 bytes each, those of a whole part. */
#define TOGETHER 4

#define COPY(type_)                                                                                   \
	for (uint32_t i = threadIdx.x; i < bytes / sizeof(type_); i += TOGETHER * blockDim.x) {       \
		type_ word[TOGETHER];                                                                 \
                                                                                                      \
		UNROLL                                                                                \
		for (uint32_t k = 0; k < TOGETHER; k++)                                               \
			if (i + k * blockDim.x < bytes / sizeof(type_))                               \
				word[k] = __ldg((const type_ *)(uintptr_t)from + i + k * blockDim.x); \
		UNROLL                                                                                \
		for (uint32_t k = 0; k < TOGETHER; k++)                                               \
			if (i + k * blockDim.x < bytes / sizeof(type_))                               \
				((type_ *)(uintptr_t)to)[i + k * blockDim.x] = word[k];               \
	}

/* Copy as many bytes at a time as both addresses and the length are multiples of. */
static __device__ void gather_copy(uint64_t to, uint64_t from, uint32_t bytes)
{
	uint64_t all = to | from | bytes;

	if (all % 16 == 0)
		COPY(uint4)
	else if (all % 4 == 0)
		COPY(uint32_t)
	else
		COPY(uint8_t)
}

__global__ void __launch_bounds__(GATHER_THREADS) gather_rows(const __grid_constant__ struct gather_call call);
__global__ void __launch_bounds__(GATHER_THREADS) gather_rows(const __grid_constant__ struct gather_call call)
{
	uint32_t row = call.row[blockIdx.x], inside = row % call.slab_rows, begin = blockIdx.y * GATHER_PART;
	uint64_t slab = call.from + row / call.slab_rows * call.slab_bytes;

	for (uint32_t i = 0; i < call.piece_count; i++) {
		const struct gather_piece *p = &call.piece[i];
		uint64_t from = slab + p->from_at + (uint64_t)inside * p->from_step;
		uint64_t to = call.to + p->to_at + (uint64_t)(call.first_row + blockIdx.x) * p->bytes;

		if (begin < p->bytes)
			gather_copy(to + begin, from + begin,
				    p->bytes - begin < GATHER_PART ? p->bytes - begin : GATHER_PART);
	}
}

#ifdef __CUDACC__
}
#endif
