/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooling.h - a trainer whose batches come out of a pool, what such loaders are asked for, and how
 * large pools must be
 */
#ifndef TESTS_CUDA_POOLING_H
#define TESTS_CUDA_POOLING_H

#include "shard_gpu.h"
#include "shard_pack.h"
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

/* The whole dataset in the pool, in each kind of order, of one rank or two. */
static inline struct shard_loader_options all_in_pool(unsigned round)
{
	return (struct shard_loader_options){.batch_records = 11,
					     .order.shuffle = 1 + round % 3,
					     .order.seed = round,
					     .tail = round / 3 % 2,
					     .gpu.pool_bytes = SHARD_POOL_ALL,
					     .world = 1 + round % 2,
					     .rank = round % 2};
}

/* Windows and batches of any shape. */
static inline struct shard_loader_options any_windows(struct prng *p, unsigned round)
{
	struct shard_loader_options o = {.batch_records = 1 + (uint32_t)prng_below(p, 8),
					 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
					 .order.seed = round,
					 .tail = round % 3,
					 .repair.on_corrupt = round % 3,
					 .thread_count = 1 + round % 2,
					 .slot_count = 2 + round % 3,
					 .gpu.slot_count = 2 + round % 3,
					 .order.run_records = 1 + prng_below(p, 3),
					 .order.window_runs = 1 + (uint32_t)prng_below(p, 3),
					 .order.lane_count = 1 + (uint32_t)prng_below(p, 4)};

	if (o.tail != SHARD_KEEP) {
		o.world = 1 + (uint32_t)prng_below(p, 3);
		o.rank = (uint32_t)prng_below(p, o.world);
	}
	return o;
}

static inline void tell_round(unsigned round, const struct shard_loader_options *o)
{
	STORY("round %u: batches of %u, runs of %" PRIu64 ", windows of %u, %u lanes, rank %u of %u, tail %u, %u slots",
	      round, o->batch_records, o->order.run_records, o->order.window_runs, o->order.lane_count, o->rank,
	      o->world, o->tail, o->gpu.slot_count);
}

/* What the error of a pool of one byte says that is needed. */
static inline uint64_t least_pool(struct shard_loader_options o)
{
	struct shard_loader *l;
	uint64_t bytes = 0;

	o.size = sizeof(o);
	o.gpu.pool_bytes = 1;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &fixture_err), SHARD_E_ARGUMENT);
	CHECK_EQ(sscanf(strstr(fixture_err.message, "a pool needs "), "a pool needs %" SCNu64, &bytes), 1);
	return bytes;
}

/*
 * Nothing makes a host wait for its GPU here, and so many looks can be under way: let it catch up
 * now and then.
 */
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
