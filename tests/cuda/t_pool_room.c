/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_pool_room.c - how small a pool may be whose batches stay in it: what they lie in is walked step
 * by step, and compared
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full -Wl,--wrap=slot_fill
 */
#include "tests/cuda/pooling.h"

/* Slabs that the batch of a step lies in, each band of its rows being all of it. */
static void slabs_of_step(const struct shard_loader *l, const struct order *o, uint64_t first_position, uint64_t step,
			  uint64_t *first, uint64_t *end)
{
	const struct order_share *share = &l->pool->plan.share;
	struct order_rank rank = l->steps.rank;

	rank.first_position = first_position;
	*first = UINT64_MAX;
	*end = 0;
	for (uint32_t i = 0; i < order_rank_rows(&rank, step); i++) {
		uint64_t low = share->whole_rows, high = order_share_rows(share), position;
		bool padded;

		position = order_rank_position(&rank, step, i, &padded);
		if (!padded)
			order_share_band(share, o, position, &low, &high);
		*first = low / l->pool->plan.slab_rows < *first ? low / l->pool->plan.slab_rows : *first;
		high = (high + l->pool->plan.slab_rows - 1) / l->pool->plan.slab_rows;
		*end = high > *end ? high : *end;
	}
}

/*
 * As many batches behind each other as can be lent, from any place on: the most slabs that they lie
 * in together.
 */
static uint64_t most_slabs(const struct shard_loader *l, const struct order *o, uint64_t first_position, unsigned steps)
{
	struct order_rank rank = l->steps.rank;
	uint64_t most = 0, epoch = 0, step = 0, first[64], end[64];

	for (unsigned i = 0; i < steps; i++, step++) {
		uint64_t sum = 0;

		rank.first_position = epoch ? 0 : first_position;
		while (step >= order_rank_steps(&rank)) {
			epoch++;
			step = rank.first_position = 0;
		}
		slabs_of_step(l, o, rank.first_position, step, &first[i], &end[i]);
		first[i] += epoch * l->pool->plan.epoch_slabs;
		end[i] += epoch * l->pool->plan.epoch_slabs;
		/* they ascend */
		for (unsigned j = i < l->o.device_slot_count ? 0 : i + 1 - l->o.device_slot_count; j <= i; j++)
			sum += j && end[j - 1] > first[j] && j + l->o.device_slot_count > i + 1 ? end[j] - end[j - 1]
												: end[j] - first[j];
		most = sum > most ? sum : most;
	}
	return most;
}

TEST(the_smallest_pool_is_hardly_larger_than_what_batches_lie_in)
{
	static uint16_t table[ORDER_TABLE_ENTRIES_MAX];
	struct prng p = {11};
	unsigned tight = 0;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned round = 0; round < 3000; round++) {
		struct shard_loader_options o = any_in_place(&p, round);
		struct shard_loader *l;
		struct order order;

		o.size = sizeof(o);
		o.batch_records = 1 + (uint32_t)prng_below(&p, 30);
		o.run_records = 1 + prng_below(&p, 6);
		o.window_runs = 1 + (uint32_t)prng_below(&p, 5);
		o.lane_count = 1 + (uint32_t)prng_below(&p, 8);
		tell_round(round, &o);
		o.pool_bytes = least_pool(o);
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		if (!l->pool->plan.is_held) {
			uint64_t most = 0;

			CHECK_OK(order_init(&order, &l->steps.params, table));
			for (uint64_t from = 0; from < TOTAL; from += 1 + prng_below(&p, 40)) {
				uint64_t now = most_slabs(l, &order, from, 40);

				most = now > most ? now : most;
			}
			CHECK(most <= l->pool->plan.slab_count);
			tight += most + 7 >= l->pool->plan.slab_count;
		}
		shard_loader_close(l);
	}
	CHECK(tight > 100);
}

TEST_MAIN()
