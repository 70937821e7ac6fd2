/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.h - kernels in PTX, the text that the driver compiles, for compute capability 7.5 and later
 *
 * libshard/gpu/make_ptx.sh makes NAME.ptx from NAME.cu.  tests/cuda/ptx.sh tells when that must be
 * done again.
 */
#ifndef SHARD_CUDA_PTX_H
#define SHARD_CUDA_PTX_H

extern const char transform_ptx[], gather_ptx[];

#endif
