/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twins.c - libshard's kernels for a program that knows nothing of the fake driver: linked to it,
 * they are there
 *
 * As C, by one thread a block: results do not depend on how many there are, and the tests of the
 * kernels themselves (t_transform_kernel, t_pool) run more.  Memory that is not there ends the
 * program.
 */
#include "tests/cuda/check_twin.h"
#include "tests/cuda/emulate.h"
#include "tests/cuda/gather_twin.h"

static uint64_t at(uint64_t device)
{
	void *memory = fake->at(device);

	if (!memory) {
		fprintf(stderr, "a kernel is told of %#llx, where nothing lives\n", (unsigned long long)device);
		abort();
	}
	return (uintptr_t)memory;
}

static void transform(const struct fake_kernel_call *c)
{
	struct transform_call call;
	uint64_t bytes;

	memcpy(&call, c->arguments[0], sizeof(call));
	bytes = call.from_end - call.from;
	call.from = at(call.from);
	call.from_end = call.from + bytes;
	call.to = at(call.to);
	call.table = at(call.table);
	emulate(c->name, &call, c->grid[0], c->grid[1], c->shared_bytes, 1);
}

static void gather(const struct fake_kernel_call *c)
{
	struct fake_kernel_call one = *c;

	one.block[0] = 1;
	twin_gather(&one);
}

__attribute__((constructor)) static void register_twins(void)
{
	static const size_t transform_bytes[] = {sizeof(struct transform_call)},
			    gather_bytes[] = {sizeof(struct gather_call)};

	fake = fake_find();
	if (!fake)
		abort();
	for (size_t i = 0; i < EMULATED_KERNELS; i++)
		fake->kernel(emulated_kernels[i].name, transform, 1, transform_bytes);
	fake->kernel("gather_rows", gather, 1, gather_bytes);
	check_twin_open();
}
