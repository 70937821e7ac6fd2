/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_pool_room.c - how small a pool may be: the slabs that each step needs are counted, and compared
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full -Wl,--wrap=slot_fill
 */
#include "libshard/base/bytes.h"
#include "tests/cuda/pooling.h"

/* The slabs that a step needs: those of all bands that its batch has a row of. */
static uint64_t slabs_of_step(const struct shard_loader *l, const struct order *o, uint64_t first_position,
			      uint64_t step)
{
	const struct order_share *share = &l->pool->plan.share;
	struct order_rank rank = l->steps.rank;
	uint64_t first = UINT64_MAX, end = 0;

	rank.first_position = first_position;
	for (uint32_t i = 0; i < order_rank_rows(&rank, step); i++) {
		uint64_t low = share->whole_rows, high = order_share_rows(share), position;
		bool padded;

		position = order_rank_position(&rank, step, i, &padded);
		if (!padded)
			order_share_band(share, o, position, &low, &high);
		first = min_u64(first, pool_plan_slab(&l->pool->plan, low));
		high = pool_plan_slab_end(&l->pool->plan, high);
		end = high > end ? high : end;
	}
	return end - first;
}

TEST(the_smallest_pool_has_room_for_each_step_and_hardly_more)
{
	static uint16_t table[ORDER_TABLE_ENTRIES_MAX];
	struct prng p = {11};
	unsigned tight = 0;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned round = 0; round < 3000; round++) {
		struct shard_loader_options o = any_windows(&p, round);
		struct shard_loader *l;
		struct order order;

		o.size = sizeof(o);
		o.batch_records = 1 + (uint32_t)prng_below(&p, 30);
		o.order.run_records = 1 + prng_below(&p, 6);
		o.order.window_runs = 1 + (uint32_t)prng_below(&p, 5);
		o.order.lane_count = 1 + (uint32_t)prng_below(&p, 8);
		tell_round(round, &o);
		o.gpu.pool_bytes = least_pool(o);
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		if (!l->pool->plan.is_held) {
			uint64_t most = 0;

			CHECK_OK(order_init(&order, &l->steps.params, table));
			for (uint64_t from = 0; from < TOTAL; from += 1 + prng_below(&p, 40)) {
				struct order_rank rank = l->steps.rank;

				rank.first_position = from;
				for (uint64_t step = 0; step < order_rank_steps(&rank); step++) {
					uint64_t now = slabs_of_step(l, &order, from, step);

					most = now > most ? now : most;
				}
			}
			CHECK(most <= l->pool->plan.slab_count);
			tight += most + 7 >= l->pool->plan.slab_count;
		}
		shard_loader_close(l);
	}
	CHECK(tight > 100);
}

TEST_MAIN()
