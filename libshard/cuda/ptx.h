/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.h - kernels as the driver takes them: PTX, a text, for compute capability 7.5 and later
 *
 * libshard/cuda/make_ptx.sh makes NAME_ptx.c of NAME.cu; tests/cuda/ptx.sh says when that must be done again.
 */
#ifndef LIBSHARD_CUDA_PTX_H
#define LIBSHARD_CUDA_PTX_H

extern const char finish_ptx[], gather_ptx[];

#endif
