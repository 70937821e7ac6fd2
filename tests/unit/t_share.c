/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_share.c - places, bands and shares: what a pool fetches is what its rank delivers, and lasts as
 * long as it must
 *
 * Everything is compared with order_at() and the positions of ranks, which t_order holds to
 * format/ORDER.md.
 */
#include "libshard/order/order.h"
#include "shard.h"
#include "tests/test.h"

#define N_CAP 400u

static uint32_t random_state = 7;

static uint32_t draw_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)random_state * n >> 32);
}

static uint16_t *prepare(struct order *o, const struct order_params *p)
{
	uint16_t *table = calloc(order_table_entries(p) + 1, sizeof(*table));

	CHECK_EQ(order_init(o, p, table), SHARD_OK);
	return table;
}

static struct order_params any_params(void)
{
	return (struct order_params){
		.kind = (enum order_kind)draw_below(3),
		.record_count = 1 + draw_below(N_CAP - 1),
		.seed = draw_below(1000),
		.epoch = draw_below(5),
		.run_records = 1 + draw_below(9),
		.phase_unit_records = draw_below(4),
		.window_runs = 1 + draw_below(4),
		.lane_count = 1 + draw_below(8),
	};
}

TEST(places_are_the_records_run_after_run_and_bands_hold_their_own)
{
	for (unsigned round = 0; round < 3000; round++) {
		struct order_params p = any_params();
		uint64_t r = p.kind == ORDER_TWO_LEVELS ? p.run_records : 1, n = p.record_count, first, end,
			 largest = 0;
		uint8_t seen[N_CAP] = {0};
		struct order o;
		uint16_t *table = prepare(&o, &p);

		STORY("round %u", round);
		for (uint64_t at = 0; at < n; at++) {
			uint64_t place = order_place(&o, at), record = order_at_place(&o, place);

			CHECK(place < n && record < n && !seen[place]);
			seen[place] = 1;
			CHECK_EQ(record, order_at(&o, at));
			if (place % r && place / r < n / r) /* within a run */
				CHECK_EQ(record, (order_at_place(&o, place - 1) + 1) % n);
			order_band(&o, at, &first, &end);
			CHECK(first <= at && at < end && first <= place && place < end && end <= n);
			largest = end - first > largest ? end - first : largest;
		}
		CHECK_EQ(order_largest_band(&p), largest);
		free(table);
	}
}

/* A row of the share with that record, within the rows of its band. */
static void check_row(const struct order_share *s, const struct order *o, uint64_t position, const uint64_t *records)
{
	uint64_t row = order_share_row(s, order_place(o, position)), first, end;

	CHECK(row < s->whole_rows);
	CHECK_EQ(records[row], order_at(o, position));
	order_share_band(s, o, position, &first, &end);
	CHECK(first <= row && row < end && end <= order_share_rows(s));
}

TEST(a_share_has_what_its_rank_delivers)
{
	for (unsigned round = 0; round < 3000; round++) {
		struct order_params p = any_params();
		uint32_t world = 1 + draw_below(5), batch = 1 + draw_below(9);
		uint64_t n = p.record_count, start = draw_below((uint32_t)n), total = 0, records[8 * N_CAP];
		struct order o;
		uint16_t *table = prepare(&o, &p);

		for (uint32_t rank = 0; rank < world; rank++) {
			struct order_rank k = {.record_count = n,
					       .first_position = start,
					       .batch_records = batch,
					       .rank = rank,
					       .world = world,
					       .last = (enum order_last)draw_below(2)};
			bool whole = draw_below(4) == 0, padded;
			struct order_share s;
			uint64_t rows, first, end, low, unused, before[3];

			STORY("round %u, rank %u of %u, batches of %u from %" PRIu64, round, rank, world, batch, start);
			order_share_init(&s, &p, &k, whole);
			rows = order_share_rows(&s);
			CHECK(rows < 8 * N_CAP);
			CHECK(!whole || (rows == n && s.stride == 1));
			CHECK(p.kind != ORDER_TWO_LEVELS || s.stride == (whole || p.lane_count % world ? 1 : world));
			order_share_fill(&s, &o, 0, records, (size_t)rows / 2);
			order_share_fill(&s, &o, rows / 2, records + rows / 2, (size_t)(rows - rows / 2));
			total += s.lane_rows;
			for (uint64_t step = 0; step < order_rank_steps(&k); step++) {
				uint32_t count = order_rank_rows(&k, step), pads = 0;

				for (uint32_t i = 0; i < count; i++) {
					uint64_t position = order_rank_position(&k, step, i, &padded);

					if (!padded)
						check_row(&s, &o, position, records);
					else if (!whole)
						CHECK_EQ(records[order_share_padding(&s, pads++)],
							 order_at(&o, position));
				}
				low = order_rank_position(&k, step, 0, &padded);
				if (padded)
					continue;
				order_share_band(&s, &o, low, &first, &unused);
				end = rows;
				if (!pads && (order_rank_position(&k, step, count - 1, &padded), !padded))
					order_share_band(&s, &o, order_rank_position(&k, step, count - 1, &padded),
							 &unused, &end);
				CHECK(end - first <= order_share_span(&s, &p, batch));
				before[step % 3] = first;
				CHECK(step < 2 ||
				      end - before[(step - 2) % 3] <= order_share_span(&s, &p, UINT64_C(3) * batch));
			}
		}
		if (p.kind == ORDER_TWO_LEVELS && p.lane_count % world == 0)
			CHECK(total >= n / p.run_records / p.lane_count * p.lane_count * p.run_records);
		free(table);
	}
}

TEST_MAIN()
