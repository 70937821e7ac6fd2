/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_twin.h - what the kernels of check.cu have to store, said by xxHash itself; and the same for
 * the fake driver
 *
 * Threads of the kernel exchange numbers in the middle of their work, so it cannot be run thread by
 * thread, as gather.cu is.  tests/ptx runs its PTX and compares it with this.
 */
#ifndef TESTS_CUDA_CHECK_TWIN_H
#define TESTS_CUDA_CHECK_TWIN_H

#define XXH_INLINE_ALL /* twins.c is linked without the library */
#include <xxhash.h>

#include <stdbool.h>
#include <string.h>

#include "libshard/gpu/check.h"
#include "tests/cuda/trainer.h"

static inline void check_twin_rows(const struct check_call *call, const uint8_t *from, struct check_result *to)
{
	for (uint32_t i = 0; i < call->row_count; i++) {
		bool skipped = call->skip[i / 32] >> i % 32 & 1;
		uint64_t hash = skipped ? 0 : XXH3_64bits(from + i * call->step, call->bytes);

		to[i] = (struct check_result){.hash = hash,
					      .verdict = skipped		 ? CHECK_SKIPPED
							 : hash == call->want[i] ? CHECK_SOUND
										 : CHECK_DAMAGED,
					      .number = call->number};
	}
}

static inline void twin_check(const struct fake_kernel_call *c)
{
	struct check_call call;
	uint64_t bytes;

	memcpy(&call, c->arguments[0], sizeof(call));
	bytes = (call.row_count - 1) * call.step + call.bytes;
	if (fake->bytes_from(call.from) >= bytes &&
	    fake->bytes_from(call.to) >= call.row_count * sizeof(struct check_result))
		check_twin_rows(&call, fake->at(call.from), fake->at(call.to));
	/* else no result has the number of this call, which the caller sees */
}

static inline void check_twin_open(void)
{
	static const size_t bytes[] = {sizeof(struct check_call)};

	fake->kernel("check_long", twin_check, 1, bytes);
	fake->kernel("check_short", twin_check, 1, bytes);
}

#endif
