/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_pool_selected.c - batches on a GPU that is not there, of a selection: copied from host
 * memory, gathered in a pool of a part, and in one that holds all
 *
 * Order and bytes are compared with arithmetic; the kernel is gather.cu itself.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=mem_alloc,--wrap=mem_zalloc,--wrap=mem_array
 * LDFLAGS: -Wl,--wrap=mem_aligned
 */
#include "shard_gpu.h"
#include "tests/cuda/counted.h"
#include "tests/cuda/pooling.h"

static struct shard_selection *some(double begin, double end)
{
	struct shard_selection *s;

	CHECK_OK(shard_select_fraction(&s, ds, NULL, begin, end, 11, &fixture_err));
	return s;
}

TEST(a_pool_of_a_selection_delivers_it)
{
	static const uint32_t sides[] = {8, 40};
	struct prng p = {9};
	struct training t;

	for (unsigned round = 0; round < 24; round++) {
		struct shard_loader_options o = {.batch_records = 1 + (uint32_t)prng_below(&p, LENT_CAP),
						 .order.shuffle = 2 + round % 2,
						 .order.seed = round,
						 .tail = round % 3,
						 .thread_count = 1 + round % 2,
						 .gpu.slot_count = 2 + round % 2};
		struct shard_selection *s;
		bool held = round % 4 < 2;

		if (round % 12 == 0)
			open_photos(sides[round / 12], SHARD_RAW, shards, COUNT(shards));
		if (o.order.shuffle == SHARD_SHUFFLE_WINDOWS) {
			o.order.run_records = 1 + prng_below(&p, 7);
			o.order.window_runs = 1 + (uint32_t)prng_below(&p, 4);
			o.order.lane_count = 1 + (uint32_t)prng_below(&p, 6);
		}
		if (o.tail != SHARD_KEEP) {
			o.world = 1 + (uint32_t)prng_below(&p, 3);
			o.rank = (uint32_t)prng_below(&p, o.world);
		}
		o.selection = s = some(0.1 * (double)(round % 3), 0.9);
		STORY("round %u: batches of %u, runs of %" PRIu64 ", windows of %u, %u lanes, world %u, %s", round,
		      o.batch_records, o.order.run_records, o.order.window_runs, o.order.lane_count, o.world,
		      held ? "all" : "a part");
		o.gpu.pool_bytes = held ? SHARD_POOL_ALL : least_pool(o);
		open_pool(&t, o, round);
		run(&t, 2 * calls_of(&t) + 3, o.gpu.slot_count - 1);
		finish(&t);
		shard_selection_close(s);
	}
}

TEST_MAIN()
