/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix.c - mixtures: format/ORDER.md, part 12
 */
#include "libshard/order/order.h"

#include <string.h>

void mix_init(struct mix *m, const uint32_t *weight, uint32_t component_count, uint32_t lane_count, uint64_t seed)
{
	*m = (struct mix){.component_count = component_count, .lane_count = lane_count, .weight = weight};
	for (uint32_t d = 0; d < component_count; d++)
		m->weight_sum += weight[d];
	m->slots_key = random_key(seed, 0, RANDOM_MIX_SLOTS);
	m->components_key = random_key(seed, 0, RANDOM_MIX_SEEDS);
}

uint64_t mix_component_seed(const struct mix *m, uint32_t component)
{
	return random_draw(m->components_key, component);
}

size_t mix_scratch_entries(const struct mix *m)
{
	return (size_t)2 * m->weight_sum + m->component_count;
}

void mix_block(const struct mix *m, uint64_t lane, uint64_t block, struct mix_slot *slot, uint16_t *scratch)
{
	uint16_t *y = scratch, *component = y + m->weight_sum, *count = component + m->weight_sum;
	uint32_t at = 0;

	for (uint32_t d = 0; d < m->component_count; d++)
		for (uint32_t i = 0; i < m->weight[d]; i++)
			component[at++] = (uint16_t)d;
	memset(count, 0, m->component_count * sizeof(*count));
	permutation_table(y, m->weight_sum, random_draw(m->slots_key, block * m->lane_count + lane));
	for (uint32_t s = 0; s < m->weight_sum; s++) {
		uint16_t d = component[y[s]];

		slot[s] = (struct mix_slot){d, count[d]++};
	}
}

uint64_t mix_position(const struct mix *m, uint32_t component, uint64_t own, struct mix_slot *slot, uint16_t *scratch)
{
	uint64_t lane = own % m->lane_count, turn = own / m->lane_count;
	uint64_t block = turn / m->weight[component];
	uint32_t before = (uint32_t)(turn % m->weight[component]), s = 0;

	mix_block(m, lane, block, slot, scratch);
	while (slot[s].component != component || slot[s].before != before)
		s++;
	return (block * m->weight_sum + s) * m->lane_count + lane;
}

/* ---- weights ---- */

static double owed(const double *share, uint32_t i, double sum)
{
	return share[i] / sum * MIX_WEIGHT_SUM_MAX;
}

/* Give one to the component that lacks most of what it is owed, or take one from that with most. */
static void correct(const double *share, uint32_t count, double sum, uint32_t *weight, bool give)
{
	uint32_t best = count;
	double most = 0;

	for (uint32_t i = 0; i < count; i++) {
		double lacks = owed(share, i, sum) - weight[i], gain = give ? lacks : -lacks;

		if ((best == count || gain > most) && (give || weight[i] > 1)) {
			best = i;
			most = gain;
		}
	}
	weight[best] += give ? 1 : (uint32_t)-1;
}

void mix_round_weights(const double *share, uint32_t count, uint32_t *weight)
{
	double sum = 0;
	uint32_t has = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += share[i];
	for (uint32_t i = 0; i < count; i++) {
		double whole = owed(share, i, sum);

		weight[i] = whole < 1 ? 1 : (uint32_t)whole;
		has += weight[i];
	}
	for (; has < MIX_WEIGHT_SUM_MAX; has++)
		correct(share, count, sum, weight, true);
	for (; has > MIX_WEIGHT_SUM_MAX; has--)
		correct(share, count, sum, weight, false);
}
