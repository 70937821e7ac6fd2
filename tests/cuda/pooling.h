/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooling.h - a trainer whose batches come out of a pool, and how large one must be
 */
#ifndef TESTS_CUDA_POOLING_H
#define TESTS_CUDA_POOLING_H

#include "libshard/load/pool.h"
#include "tests/cuda/gather_twin.h"
#include "tests/cuda/training.h"

static const uint64_t shards[] = {90, 1, 0, 120, 62};
#define TOTAL 273u

static inline uint64_t dataset_bytes(void)
{
	return TOTAL * (schema.group[0].stride + schema.group[1].stride);
}

/* Two groups of 4096 bytes and more, and no other. */
static inline void open_large_photos(void)
{
	schema = photo_schema(40, SHARD_RAW);
	schema.field[PHOTO_WEIGHT].shape[0] = 1200;
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	make_dataset("large", shards, COUNT(shards));
}

static inline void open_pool(struct training *t, struct shard_loader_options o, uint64_t seed)
{
	training_open(t, o, (enum stream_kind)(seed % STREAM_KINDS), seed);
	gather_twin_open();
	fake->seed(seed, (unsigned[]){0, 100, 700}[seed % 3]);
	t->slow_us = seed % 4 == 3 ? 300 : 0;
}

/* What the error of a pool of one byte says that is needed. */
static inline uint64_t least_pool(struct shard_loader_options o)
{
	struct shard_loader *l;
	uint64_t bytes = 0;

	o.size = sizeof(o);
	o.pool_bytes = 1;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &fixture_err), SHARD_E_ARGUMENT);
	CHECK_EQ(sscanf(strstr(fixture_err.message, "a pool needs "), "a pool needs %" SCNu64, &bytes), 1);
	return bytes;
}

/* Nothing makes a host wait for its GPU here, and so many looks can be under way: let it catch up now and then. */
static inline void run(struct training *t, unsigned calls, unsigned keep)
{
	for (unsigned some; calls; calls -= some) {
		some = calls < LOOKS / 2 ? calls : LOOKS / 2;
		train(t, some, keep);
		fake->settle();
	}
}

static inline void finish(struct training *t)
{
	train_give_all(t);
	CHECK_SOUND_TRAINING();
	training_close(t);
	trainer_check_clean();
}

/* Calls of next in an epoch, its end included. */
static inline unsigned calls_of(const struct training *t)
{
	return (unsigned)shard_loader_step_count(t->l) + 1;
}

#endif
