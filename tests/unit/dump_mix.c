/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_mix.c - prints positions of a mixture, for comparison with format/shardorder.py, which takes
 * the same words
 *
 *   dump_mix mix L SEED WEIGHTS SIZES KIND r w u P COUNT   component, pass, record at P, P + 1, ...
 *
 * Fails if the inverse does not lead back.  Not a test by itself: tests/twin/mix.sh runs it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/order/order.h"
#include "shard.h"

static uint16_t scratch[3 * MIX_WEIGHT_SUM_MAX], table[ORDER_TABLE_ENTRIES_MAX];
static struct mix_slot slots[MIX_WEIGHT_SUM_MAX];
static uint64_t sizes[MIX_WEIGHT_SUM_MAX], numbers[MIX_WEIGHT_SUM_MAX];
static uint32_t weights[MIX_WEIGHT_SUM_MAX];

/* The numbers of a list with commas.  Returns how many. */
static uint32_t list(const char *text, uint64_t *out)
{
	uint32_t n = 0;
	char *end;

	for (;; text = end + 1) {
		out[n++] = strtoull(text, &end, 10);
		if (!*end)
			return n;
		if (end == text || *end != ',' || n == MIX_WEIGHT_SUM_MAX)
			exit(2);
	}
}

static void print_at(const struct mix *m, const struct order_params *common, uint64_t position)
{
	struct mix_place at = mix_place_of(m, position);
	struct order_params p = *common;
	struct mix_slot slot;
	struct order o;
	uint64_t q, many;

	mix_block(m, at.lane, at.block, slots, scratch);
	slot = slots[at.slot];
	q = mix_own_position(m, &at, &slot);
	p.record_count = sizes[slot.component];
	p.seed = mix_component_seed(m, slot.component);
	p.epoch = q / p.record_count;
	if (order_init(&o, &p, table) != SHARD_OK)
		exit(2);
	many = q % p.record_count;
	order_many(&o, &many, 1);
	if (many != order_at(&o, q % p.record_count) || mix_position(m, slot.component, q, slots, scratch) != position)
		exit(4);
	printf("%u %" PRIu64 " %" PRIu64 "\n", slot.component, p.epoch, many);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"sequential", "one_level", "two_levels"};
	struct order_params p = {.kind = ORDER_SEQUENTIAL};
	uint64_t first, count;
	struct mix m;
	uint32_t components;

	if (argc != 12 || strcmp(argv[1], "mix")) {
		fprintf(stderr, "dump_mix: see the first lines of tests/unit/dump_mix.c\n");
		return 2;
	}
	components = list(argv[4], numbers);
	for (uint32_t d = 0; d < components; d++)
		weights[d] = (uint32_t)numbers[d];
	list(argv[5], sizes);
	while (strcmp(kinds[p.kind], argv[6]))
		p.kind++;
	p.run_records = strtoull(argv[7], NULL, 10);
	p.window_runs = (uint32_t)strtoul(argv[8], NULL, 10);
	p.lane_count = (uint32_t)strtoul(argv[2], NULL, 10);
	p.phase_unit_records = strtoull(argv[9], NULL, 10);
	first = strtoull(argv[10], NULL, 10);
	count = strtoull(argv[11], NULL, 10);
	mix_init(&m, weights, components, p.lane_count, strtoull(argv[3], NULL, 10));
	for (uint64_t i = 0; i < count; i++)
		print_at(&m, &p, first + i);
	return fflush(stdout) || ferror(stdout) ? 3 : 0;
}
