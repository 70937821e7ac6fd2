/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs_out.h - memory that runs out: the library's n-th allocation from now fails, once
 *
 * A program that includes this links with
 * -Wl,--wrap=mem_alloc,--wrap=mem_zalloc,--wrap=mem_array,--wrap=mem_aligned.
 */
#ifndef TESTS_CUDA_RUNS_OUT_H
#define TESTS_CUDA_RUNS_OUT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "libshard/base/mem.h"

static atomic_int allocations_left = -1; /* until one fails; below 0: none does */

static bool runs_out(void)
{
	return atomic_fetch_sub(&allocations_left, 1) == 0;
}

#define MAY_FAIL(name_, types_, names_)                           \
	void *__real_##name_ types_;                              \
	void *__wrap_##name_ types_;                              \
	void *__wrap_##name_ types_                               \
	{                                                         \
		return runs_out() ? NULL : __real_##name_ names_; \
	}
MAY_FAIL(mem_alloc, (size_t bytes), (bytes))
MAY_FAIL(mem_zalloc, (size_t bytes), (bytes))
MAY_FAIL(mem_array, (size_t count, size_t bytes), (count, bytes))
MAY_FAIL(mem_aligned, (size_t align, size_t bytes), (align, bytes))

#endif
