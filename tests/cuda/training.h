/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.h - a trainer on the fake driver: each batch is looked at by a kernel, late, on the
 * trainer's stream
 *
 * What the GPU finds is compared there, with the record indices that the batch had when it came;
 * complaints of the host are in `wanted`, those of the GPU in `gpu`.  A program that includes this
 * links with -Wl,--wrap=slot_fill.
 */
#ifndef TESTS_CUDA_TRAINING_H
#define TESTS_CUDA_TRAINING_H

#include "libshard/gpu/gpu.h"
#include "libshard/loader/loader.h"
#include "shard_gpu.h"
#include "tests/cuda/trainer.h"
#include "tests/load/inject.h"

#define LOOKS 64u /* more than can be under way */

static const uint64_t sizes[] = {40, 1, 0, 62};
static struct wanted wanted, gpu;

static struct look {
	struct shard_batch b;
	uint64_t record[LENT_CAP];
	uint8_t row_flags[LENT_CAP];
	bool on_host; /* the batch is in host memory, and its trainer copies from there */
	unsigned slow_us;
} looks[LOOKS];
static unsigned look_count;

static inline void twin_look(const struct fake_kernel_call *c)
{
	struct look *k;

	memcpy(&k, c->arguments[0], sizeof(k));
	usleep(k->slow_us);
	for (uint32_t f = 0; !k->on_host && f < schema.field_count; f++) {
		k->b.field[f].data = fake->at((uintptr_t)k->b.field[f].data);
		if (!k->b.field[f].data) {
			complain(&gpu, "step %" PRIu64 " is not in device memory any more", k->b.step);
			return;
		}
	}
	check_rows(&gpu, &k->b);
}

enum stream_kind { LEGACY, BLOCKING, NON_BLOCKING, STREAM_KINDS };

struct training {
	struct shard_loader *l;
	void *context, *stream, *module, *function;
	struct lent lent;
	struct prng p;
	unsigned slow_us;
};

static inline void launch_look(struct training *t, const struct shard_batch *b, bool on_host)
{
	struct look *k = &looks[look_count++ % LOOKS];
	uint64_t address = on_host ? 0 : (uintptr_t)b->group[0].data;
	void *arguments[] = {&k, &address};

	CHECK(b->record_count <= LENT_CAP);
	k->b = *b;
	memcpy(k->record, b->record, b->record_count * sizeof(*b->record));
	memcpy(k->row_flags, b->row_flags, b->record_count);
	k->b.record = k->record;
	k->b.row_flags = k->row_flags;
	k->on_host = on_host;
	k->slow_us = t->slow_us ? (unsigned)prng_below(&t->p, t->slow_us) : 0;
	CU_OK(cu.cuLaunchKernel(t->function, 1, 1, 1, 1, 1, 1, 0, t->stream, arguments, NULL));
}

/* A trainer whose context is current, and a loader with these options. */
static inline void training_open(struct training *t, struct shard_loader_options o, enum stream_kind kind,
				 uint64_t seed)
{
	static const size_t bytes[] = {8, 8};

	memset(t, 0, sizeof(*t));
	t->p.state = seed;
	inject_nothing();
	trainer_open();
	CU_OK(cu.cuDevicePrimaryCtxRetain(&t->context, 71));
	CU_OK(cu.cuCtxPushCurrent(t->context));
	if (kind != LEGACY)
		CU_OK(cu.cuStreamCreate(&t->stream, kind == NON_BLOCKING));
	fake->kernel("look", twin_look, 2, bytes);
	CU_OK(cu.cuModuleLoadData(&t->module, "look"));
	CU_OK(cu.cuModuleGetFunction(&t->function, t->module, "look"));
	fake->reset();
	wanted_open(&wanted, o);
	gpu = wanted;
	t->l = loader_of(&wanted);
}

/* Without a pool (0), or with one (1). */
static inline struct shard_loader_options pool_options(unsigned pool)
{
	return (struct shard_loader_options){.batch_records = 9, .gpu.pool_bytes = pool ? SHARD_POOL_ALL : 0};
}

/* The trainer goes; the loader has gone before. */
static inline void trainer_leave(struct training *t)
{
	void *popped;

	fake->settle();
	if (t->stream)
		CU_OK(cu.cuStreamDestroy(t->stream));
	CU_OK(cu.cuModuleUnload(t->module));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	CHECK(popped == t->context); /* the loader left what it found */
	CU_OK(cu.cuDevicePrimaryCtxRelease(71));
}

static inline void training_close(struct training *t)
{
	close_loader(t->l);
	trainer_leave(t);
}

static inline struct shard_loader_stats loader_stats(struct shard_loader *l)
{
	struct shard_loader_stats s;

	shard_loader_stats(l, &s);
	return s;
}

static inline struct shard_loader_stats stats_of(const struct training *t)
{
	return loader_stats(t->l);
}

/* What a forked child does that has no part in it. */
static inline int close_in_child(struct training *t)
{
	shard_loader_close(t->l);
	return 0;
}

static inline int train_next(struct training *t, struct shard_batch *b)
{
	struct shard_error err = {.message = ""};
	int rc = shard_loader_next_device(t->l, t->stream, b, &err);

	if (check_next(&wanted, b, rc, &err))
		launch_look(t, b, false);
	return rc;
}

static inline void train_give(struct training *t, unsigned which)
{
	struct shard_error err = {.message = ""};
	struct shard_batch b = t->lent.batch[which];

	t->lent.batch[which] = t->lent.batch[--t->lent.count];
	if (shard_loader_release_after(t->l, &b, t->stream, &err))
		complain(&wanted, "release_after: %s", err.message);
}

/*
 * So many calls of next; at most `keep` batches are lent after each, and they are given back in any
 * order.
 */
static inline void train(struct training *t, unsigned calls, unsigned keep)
{
	while (calls-- && !wanted.complaint[0]) {
		if (train_next(t, &t->lent.batch[t->lent.count]) == SHARD_OK)
			t->lent.count++;
		while (t->lent.count > keep || (t->lent.count && !prng_below(&t->p, 3)))
			train_give(t, (unsigned)prng_below(&t->p, t->lent.count));
	}
}

static inline void train_give_all(struct training *t)
{
	while (t->lent.count)
		train_give(t, 0);
	fake->settle();
}

#define CHECK_SOUND_TRAINING()               \
	do {                                 \
		CHECK_NO_COMPLAINT(&wanted); \
		CHECK_NO_COMPLAINT(&gpu);    \
	} while (0)

#endif
