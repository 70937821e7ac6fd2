/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_mix.c - the arithmetic of mixtures: exact weights, each own position once, the inverse, and the
 * rounding of weights; tests/twin/mix.sh compares it with format/shardorder.py
 */
#include "libshard/order/order.h"

#include <stdlib.h>

#include "tests/store/fixture.h"

static struct mix_slot slots[MIX_WEIGHT_SUM_MAX];
static uint16_t scratch[3 * MIX_WEIGHT_SUM_MAX];

static const struct {
	uint32_t weight[6], count, lanes;
} mixtures[] = {{{1}, 1, 1}, {{1, 1}, 2, 4}, {{3, 1}, 2, 64}, {{5, 1, 2, 9}, 4, 3}, {{1, 300, 7, 7, 2, 50}, 6, 16}};

/* In whole blocks each component has exactly its share of each lane, each own position once. */
TEST(each_position_of_a_component_comes_once_and_is_found_again)
{
	for (size_t i = 0; i < COUNT(mixtures); i++) {
		uint64_t blocks = 3, positions, *times[6];
		struct mix m;

		mix_init(&m, mixtures[i].weight, mixtures[i].count, mixtures[i].lanes, 40 + i);
		positions = blocks * m.weight_sum * m.lane_count;
		for (uint32_t d = 0; d < m.component_count; d++)
			times[d] = calloc(blocks * m.weight[d] * m.lane_count, sizeof(uint64_t));
		for (uint64_t p = 0; p < positions; p++) {
			struct mix_place at = mix_place_of(&m, p);
			uint64_t own;

			mix_block(&m, at.lane, at.block, slots, scratch);
			own = mix_own_position(&m, &at, &slots[at.slot]);
			CHECK(own < blocks * m.weight[slots[at.slot].component] * m.lane_count);
			CHECK_EQ(times[slots[at.slot].component][own]++, 0);
			CHECK_EQ(mix_position(&m, slots[at.slot].component, own, slots, scratch), p);
		}
		for (uint32_t d = 0; d < m.component_count; d++) {
			for (uint64_t own = 0; own < blocks * m.weight[d] * m.lane_count; own++)
				CHECK_EQ(times[d][own], 1);
			free(times[d]);
		}
	}
}

TEST(blocks_of_lanes_differ_and_so_do_seeds)
{
	static const uint32_t weight[] = {20, 20};
	static struct mix_slot other[MIX_WEIGHT_SUM_MAX];
	struct mix m, n;

	mix_init(&m, weight, 2, 64, 1);
	mix_init(&n, weight, 2, 64, 2);
	mix_block(&m, 0, 0, slots, scratch);
	mix_block(&m, 1, 0, other, scratch);
	CHECK(memcmp(slots, other, 40 * sizeof(*slots)) != 0);
	mix_block(&m, 0, 1, other, scratch);
	CHECK(memcmp(slots, other, 40 * sizeof(*slots)) != 0);
	mix_block(&n, 0, 0, other, scratch);
	CHECK(memcmp(slots, other, 40 * sizeof(*slots)) != 0);
	CHECK(mix_component_seed(&m, 0) != mix_component_seed(&m, 1));
	CHECK(mix_component_seed(&m, 0) != mix_component_seed(&n, 0));
}

TEST(weights_are_rounded_by_largest_remainder)
{
	static const double share[][4] = {{1, 1, 1, 1}, {1, 2, 3, 4}, {1e-9, 1e-9, 1, 1}, {0.3, 0.3, 0.3, 0.1}};
	static const uint32_t want[][4] = {
		{1024, 1024, 1024, 1024}, {410, 819, 1229, 1638}, {1, 1, 2047, 2047}, {1229, 1229, 1229, 409}};
	static double many[MIX_WEIGHT_SUM_MAX];
	static uint32_t got[MIX_WEIGHT_SUM_MAX];
	struct prng p = {9};

	for (size_t i = 0; i < COUNT(share); i++) {
		mix_round_weights(share[i], 4, got);
		for (int k = 0; k < 4; k++)
			CHECK_EQ(got[k], want[i][k]);
	}
	for (int round = 0; round < 30; round++) {
		uint32_t count = 1 + (uint32_t)prng_below(&p, round % 3 ? 40 : MIX_WEIGHT_SUM_MAX), sum = 0;
		double all = 0;

		for (uint32_t i = 0; i < count; i++)
			all += many[i] = (double)(1 + prng_below(&p, 1000000)) / (round % 5 + 1);
		mix_round_weights(many, count, got);
		for (uint32_t i = 0; i < count; i++) {
			double owed = many[i] / all * MIX_WEIGHT_SUM_MAX;

			CHECK(got[i] >= 1);
			CHECK(got[i] < owed + 1 || got[i] == 1);
			sum += got[i];
		}
		CHECK_EQ(sum, MIX_WEIGHT_SUM_MAX);
	}
}

TEST_MAIN()
