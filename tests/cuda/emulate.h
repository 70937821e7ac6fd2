/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate.h - the kernels of libshard/gpu/transform.cu as C, and a GPU of a few threads to run
 * them on
 *
 * A block's threads are threads, which wait for each other in __syncthreads(), so a sanitizer sees
 * two that should have waited; blocks come one after the other, in any order.  Shared memory is as
 * long as the launch asked for, and holds rubbish at first.
 */
#ifndef TESTS_CUDA_EMULATE_H
#define TESTS_CUDA_EMULATE_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/cuda_as_c.h"

static _Thread_local uint4 (*emulated_shared)[];
static _Thread_local pthread_barrier_t *emulated_barrier;

/* For a control: the one of so many in a kernel that is left out; 0: none. */
static unsigned emulated_without;
static _Thread_local unsigned emulated_count;

static inline void __syncthreads(void)
{
	if (++emulated_count != emulated_without)
		pthread_barrier_wait(emulated_barrier);
}

static inline double __dmul_rn(double a, double b)
{
	return a * b;
}

#define EMULATED_SHARED_MOST 101376u /* of a GPU of compute capability 8.6 that is asked for more */

#define transform_shared (*emulated_shared)
#define UNROLL
#define COMPACT
#include "libshard/gpu/transform.cu"
#undef transform_shared

/* ---- a GPU ---- */

typedef void (*emulated_kernel)(const struct transform_call call);

static const struct {
	const char *name;
	emulated_kernel run;
} emulated_kernels[] = {
#define EMULATED(name_) {#name_, name_},
	EMULATED(transform_crop_any_8) EMULATED(transform_resize_8) EMULATED(transform_crop_any_16)
		EMULATED(transform_crop_any_32) EMULATED(transform_crop_chw_16) EMULATED(transform_crop_chw_32)
			EMULATED(transform_crop_hwc_16) EMULATED(transform_crop_hwc_32) EMULATED(transform_resize_16)
				EMULATED(transform_resize_32)};
#define EMULATED_KERNELS (sizeof(emulated_kernels) / sizeof(emulated_kernels[0]))

struct emulated_launch {
	emulated_kernel run;
	const struct transform_call *call;
	uint32_t across, down, threads, shared_bytes;
	uint8_t *shared;
	pthread_barrier_t barrier;
};
struct emulated_thread {
	struct emulated_launch *l;
	uint32_t number;
	pthread_t thread;
};

static inline void *emulate_thread(void *context)
{
	const struct emulated_thread *t = context;
	struct emulated_launch *l = t->l;

	threadIdx = (struct emulated_dim){t->number, 0, 0};
	blockDim = (struct emulated_dim){l->threads, 1, 1};
	emulated_shared = (uint4(*)[])(void *)l->shared;
	emulated_barrier = &l->barrier;
	for (uint32_t i = 0; i < l->across * l->down; i++) {
		uint32_t block = l->across * l->down - 1 - i; /* CUDA promises no order */

		blockIdx = (struct emulated_dim){block % l->across, block / l->across, 0};
		if (!t->number)
			memset(l->shared, 0x5a + (int)block, l->shared_bytes);
		pthread_barrier_wait(&l->barrier);
		emulated_count = 0;
		l->run(*l->call);
		pthread_barrier_wait(&l->barrier);
	}
	return NULL;
}

/* A launch, with `threads` threads a block whatever was asked for; kernels do not depend on it. */
static inline void emulate(const char *name, const struct transform_call *call, uint32_t across, uint32_t down,
			   uint32_t shared_bytes, uint32_t threads)
{
	struct emulated_launch l = {
		.call = call, .across = across, .down = down, .threads = threads, .shared_bytes = shared_bytes};
	struct emulated_thread team[64];

	for (size_t i = 0; i < EMULATED_KERNELS; i++)
		if (!strcmp(emulated_kernels[i].name, name))
			l.run = emulated_kernels[i].run;
	if (!l.run || threads > 64 || shared_bytes > EMULATED_SHARED_MOST)
		abort();
	l.shared = aligned_alloc(16, shared_bytes);
	pthread_barrier_init(&l.barrier, NULL, threads);
	for (uint32_t i = 0; i < threads; i++) {
		team[i] = (struct emulated_thread){&l, i, 0};
		if (i && pthread_create(&team[i].thread, NULL, emulate_thread, &team[i]))
			abort();
	}
	emulate_thread(&team[0]);
	for (uint32_t i = 1; i < threads; i++)
		pthread_join(team[i].thread, NULL);
	pthread_barrier_destroy(&l.barrier);
	free(l.shared);
}

#endif
