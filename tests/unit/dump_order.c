/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_order.c - prints orders and shares, for comparison with format/shardorder.py, which takes
 * the same words
 *
 *   dump_order order KIND N r w L u SEED EPOCH [P COUNT]   records at P, P + 1, ..., by order_at
 *   dump_order fill  KIND N r w L u SEED EPOCH [P COUNT]   the same by order_fill
 *   dump_order share MODE N P R B q                        count of steps, step, row, position,
 *                                                          padded
 *
 * Not a test by itself: tests/twin/order.sh runs it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/order/order.h"
#include "shard.h"

static uint16_t table[ORDER_TABLE_ENTRIES_MAX];

__attribute__((noreturn)) static void usage(const char *what)
{
	fprintf(stderr, "dump_order: %s; see the first lines of tests/unit/dump_order.c\n", what);
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	if (end == text || *end)
		usage("not a number");
	return v;
}

static uint32_t number32(const char *text)
{
	uint64_t v = number(text);

	if (v > UINT32_MAX)
		usage("number above 2^32 - 1");
	return (uint32_t)v;
}

static int index_of(const char *word, const char *const *words, int count)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(word, words[i]))
			return i;
	usage("unknown word");
}

static void print_order(int fill, int argc, char **argv)
{
	static const char *const kinds[] = {"sequential", "one_level", "two_levels"};
	struct order_params p = {.kind = (enum order_kind)index_of(argv[2], kinds, 3),
				 .record_count = number(argv[3]),
				 .run_records = number(argv[4]),
				 .window_runs = number32(argv[5]),
				 .lane_count = number32(argv[6]),
				 .phase_unit_records = number(argv[7]),
				 .seed = number(argv[8]),
				 .epoch = number(argv[9])};
	uint64_t first = argc > 10 ? number(argv[10]) : 0, count = argc > 10 ? number(argv[11]) : p.record_count;
	struct order o;

	if (order_init(&o, &p, table) != SHARD_OK)
		usage("parameter outside its range");
	while (count) {
		uint64_t records[1000], n = count < 1000 ? count : 1000;

		order_fill(&o, first, 1, records, n);
		for (uint64_t i = 0; i < n; i++)
			printf("%" PRIu64 "\n", fill ? records[i] : order_at(&o, first + i));
		first += n;
		count -= n;
	}
}

static void print_share(char **argv)
{
	static const char *const modes[] = {"drop", "pad", "keep"};
	struct order_rank k = {.last = (enum order_last)index_of(argv[2], modes, 3),
			       .record_count = number(argv[3]),
			       .first_position = number(argv[4]),
			       .world = number32(argv[5]),
			       .batch_records = number32(argv[6]),
			       .rank = number32(argv[7])};

	if (order_rank_check(&k) != SHARD_OK)
		usage("parameter outside its range");
	printf("%" PRIu64 "\n", order_rank_steps(&k));
	for (uint64_t step = 0; step < order_rank_steps(&k); step++)
		for (uint32_t row = 0; row < order_rank_rows(&k, step); row++) {
			bool padded;
			uint64_t position = order_rank_position(&k, step, row, &padded);

			printf("%" PRIu64 " %u %" PRIu64 " %d\n", step, row, position, padded);
		}
}

int main(int argc, char **argv)
{
	if ((argc == 10 || argc == 12) && (!strcmp(argv[1], "order") || !strcmp(argv[1], "fill")))
		print_order(argv[1][0] == 'f', argc, argv);
	else if (argc == 8 && !strcmp(argv[1], "share"))
		print_share(argv);
	else
		usage("wrong count of words");
	return fflush(stdout) || ferror(stdout) ? 3 : 0;
}
