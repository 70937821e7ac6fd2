/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.cu - kernels that transform images: gather, crop or resize, flip, look up, lay out
 *
 * transform_twin() of libshard/transform/transform_twin.c is the definition.
 * libshard/transform/grid.c tells how a call is spread over blocks.  A block makes a band of lines
 * of one row, in two steps:
 *
 *   (1) It brings the samples of the band to shared memory, as they lie (kernel_lines.h) or resized
 *       (kernel_resize.h).
 *   (2) Each thread takes some of them, looks up their numbers, and stores 16 bytes (kernel_put.h).
 *       If samples stay bytes, it stores them one by one.
 *
 * A sample is a byte, and a table has the number that it becomes, so numbers are exact.  Only
 * weights are computed with fractions.  They are doubles, and a product is never fused with a sum
 * (__dmul_rn, and nvcc -fmad=false).  So every device, and a CPU, gets the same bits.
 *
 * The code is both C11 and CUDA: tests/cuda/t_transform_kernel.c compiles it as C, and runs it
 * thread by thread.  libshard/gpu/make_ptx.sh makes transform.ptx from it.
 */
#include "libshard/gpu/kernel_put.h"
#include "libshard/gpu/kernel_resize.h"

#ifdef __CUDACC__
extern "C" {
#endif

enum { ANY = TRANSFORM_ANY, CHW = TRANSFORM_CHW, HWC = TRANSFORM_HWC };

FORCED void put(const struct transform_call *call, const struct part *row, uint32_t first, uint32_t lines, int resized,
		uint32_t shape, uint32_t bytes)
{
	if (shape == ANY)
		put_any(call, row, first, lines, resized, bytes);
	else if (shape == CHW)
		put_chw(call, row, first, lines, resized, bytes);
	else
		put_hwc(call, row, first, lines, resized, bytes);
}

FORCED void transform_crop(const struct transform_call *call, uint32_t shape, uint32_t bytes)
{
	const struct part row = part_of(call);
	uint32_t first = blockIdx.x * call->band_lines, table_chunks = call->channels * 256 * bytes / 16;
	uint4 table = load_table(call, table_chunks);
	struct lines lines;

	lines.first = first;
	lines.count = least(call->height - first, call->band_lines);
	lines.chunks = call->pitch / 16;
	bring_lines(call, &row, &lines);
	store_table(call, table_chunks, &table);
	__syncthreads();
	put(call, &row, first, lines.count, 0, shape, bytes);
}

/* Weights across are the same for all bands of a block; those down are of the band. */
FORCED void transform_resize(const struct transform_call *call, uint32_t bytes)
{
	const struct part row = part_of(call);
	uint32_t first = blockIdx.x * call->block_lines, end = least(first + call->block_lines, call->height), lines;
	uint32_t table_chunks = call->channels * 256 * bytes / 16;
	uint4 table = load_table(call, table_chunks);

	fill_across(call, &row);
	store_table(call, table_chunks, &table);
	COMPACT
	for (; first < end; first += call->band_lines) {
		lines = least(end - first, call->band_lines);
		fill_down(call, &row, first, lines);
		__syncthreads();
		first_pass(call, &row, lines);
		__syncthreads();
		if (row.y & TRANSFORM_DOWN_FIRST)
			part_across(call, &row, lines);
		else
			resize_down(call, lines);
		__syncthreads();
		put(call, &row, first, lines, 1, bytes == 1 ? ANY : call->shape, bytes);
	}
}

#define KERNEL(name_, body_)                                                                                           \
	__global__ void __launch_bounds__(TRANSFORM_THREADS)                                                           \
		name_(const __grid_constant__ struct transform_call call);                                             \
	__global__ void __launch_bounds__(TRANSFORM_THREADS) name_(const __grid_constant__ struct transform_call call) \
	{                                                                                                              \
		body_;                                                                                                 \
	}

KERNEL(transform_crop_any_8, transform_crop(&call, ANY, 1))
KERNEL(transform_crop_any_16, transform_crop(&call, ANY, 2))
KERNEL(transform_crop_any_32, transform_crop(&call, ANY, 4))
KERNEL(transform_crop_chw_16, transform_crop(&call, CHW, 2))
KERNEL(transform_crop_chw_32, transform_crop(&call, CHW, 4))
KERNEL(transform_crop_hwc_16, transform_crop(&call, HWC, 2))
KERNEL(transform_crop_hwc_32, transform_crop(&call, HWC, 4))
KERNEL(transform_resize_8, transform_resize(&call, 1))
KERNEL(transform_resize_16, transform_resize(&call, 2))
KERNEL(transform_resize_32, transform_resize(&call, 4))

#ifdef __CUDACC__
}
#endif
