/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted.h - how often the library asks for memory
 *
 * A program that includes this links with
 * -Wl,--wrap=mem_alloc,--wrap=mem_zalloc,--wrap=mem_array,--wrap=mem_aligned.
 */
#ifndef TESTS_CUDA_COUNTED_H
#define TESTS_CUDA_COUNTED_H

#include <stdatomic.h>

#include "libshard/base/mem.h"

static atomic_uint allocated;

#define COUNTED(name_, types_, names_)           \
	void *__real_##name_ types_;             \
	void *__wrap_##name_ types_;             \
	void *__wrap_##name_ types_              \
	{                                        \
		atomic_fetch_add(&allocated, 1); \
		return __real_##name_ names_;    \
	}
COUNTED(mem_alloc, (size_t bytes), (bytes))
COUNTED(mem_zalloc, (size_t bytes), (bytes))
COUNTED(mem_array, (size_t count, size_t bytes), (count, bytes))
COUNTED(mem_aligned, (size_t align, size_t bytes), (align, bytes))

#endif
