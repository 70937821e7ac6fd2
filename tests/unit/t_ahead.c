/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ahead.c - what steps name for the disk: in windows each run of the next window once, by the
 * rank that takes it; else the records of a later step
 *
 * The twin asks for the order of each position of the next window, one by one.
 */
#include "libshard/feed/feed.h"

#include "tests/test.h"

#define N_CAP	 3000u
#define ROOM_CAP 4096u

static uint64_t state = 1;

static uint32_t below(uint32_t n)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

static struct steps any_steps(bool windows)
{
	struct steps s = {
		.params = {.kind = windows    ? ORDER_TWO_LEVELS
				   : below(2) ? ORDER_ONE_LEVEL
					      : ORDER_SEQUENTIAL,
			   .record_count = 200 + below(N_CAP - 200),
			   .seed = below(1000),
			   .run_records = 8 + below(20),
			   .window_runs = 1 + below(4),
			   .lane_count = 1 + below(8)},
		.rank = {.world = 1 + below(4), .batch_records = 40 + below(60), .last = ORDER_PAD},
	};

	s.rank.record_count = s.params.record_count;
	s.rank.rank = below(s.rank.world);
	return s;
}

/* Mark the runs of the next window that hold a record which this rank takes: the slow way. */
static bool mark_wanted(const struct steps *s, const struct order *o, uint64_t first, uint8_t *wanted)
{
	uint64_t begin, end, next, next_end;
	bool any = false;

	order_band(o, first, &begin, &end);
	if (end >= o->params.record_count)
		return false;
	order_band(o, end, &next, &next_end);
	for (uint64_t at = next; at < next_end; at++)
		if (at % s->rank.world == s->rank.rank) {
			wanted[order_place(o, at) / o->params.run_records] = 1;
			any = true;
		}
	return any;
}

/* Which run holds a record?  The slow way. */
static uint64_t run_of(const struct order *o, uint64_t record)
{
	for (uint64_t place = 0; place < o->params.record_count; place++)
		if (order_at_place(o, place) == record)
			return place / o->params.run_records;
	CHECK(false);
	return 0;
}

TEST(the_steps_of_a_window_name_each_run_of_the_next_one)
{
	static uint64_t record[ROOM_CAP];
	static uint8_t flags[ROOM_CAP];
	unsigned windows_met = 0;

	for (unsigned round = 0; round < 60; round++) {
		struct steps s = any_steps(true);
		uint64_t ahead = 1 + below(9), first, end, step_records = steps_records(&s), band = UINT64_MAX;
		uint8_t wanted[N_CAP] = {0}, named[N_CAP] = {0};
		uint16_t *table = calloc(order_table_entries(&s.params) + 1, sizeof(*table));
		struct order o;

		STORY("round %u", round);
		CHECK_EQ(order_init(&o, &s.params, table), SHARD_OK);
		for (struct step_place p = {0}; !steps_ended(&s, &p); p.step++) {
			uint64_t at = steps_position(&s, &p);
			uint32_t named_rows;

			order_band(&o, at, &first, &end);
			if (end - first < 2 * step_records || s.params.lane_count % s.rank.world)
				continue;    /* a step may meet two windows, and then names runs of one only */
			if (band != first) { /* the first step that begins in this window names what is left of it */
				band = first;
				memset(named, 0, sizeof(named));
			}
			named_rows = steps_ahead(&s, &o, &p, 3, ahead,
						 (struct step_rows){.record = record, .row_flags = flags});
			CHECK(named_rows <= s.rank.batch_records + STEPS_AHEAD_ROWS);
			for (uint32_t i = 0; i < named_rows; i++)
				named[run_of(&o, record[i])] = 1;
			if (at + step_records < end)
				continue;
			/* All are named, but for those of a step that began before this window. */
			memset(wanted, 0, sizeof(wanted));
			windows_met += mark_wanted(&s, &o, at, wanted);
			for (uint64_t run = 0; run < o.params.record_count / o.params.run_records; run++) {
				uint64_t place = run * o.params.run_records, next = end + step_records;

				if (named[run])
					CHECK(wanted[run]);
				if (wanted[run] && place >= next && end < o.lanes_end)
					CHECK(named[run]);
			}
		}
		free(table);
	}
	CHECK(windows_met > 20);
}

TEST(of_a_run_no_part_is_left_out)
{
	static uint64_t record[ROOM_CAP];
	static uint8_t flags[ROOM_CAP];
	struct steps s = {.params = {.kind = ORDER_TWO_LEVELS,
				     .record_count = 1024,
				     .seed = 5,
				     .run_records = 64,
				     .window_runs = 2,
				     .lane_count = 2},
			  .rank = {.record_count = 1024, .world = 1, .batch_records = 64}};
	uint16_t *table = calloc(order_table_entries(&s.params) + 1, sizeof(*table));
	struct step_place p = {.step = 1};
	struct order o;

	CHECK_EQ(order_init(&o, &s.params, table), SHARD_OK);
	CHECK_EQ(steps_ahead(&s, &o, &p, 1, 16, (struct step_rows){.record = record, .row_flags = flags}),
		 5); /* parts of 16 records: 4 of them, and the last record */
	for (uint32_t i = 0; i < 4; i++)
		CHECK_EQ(record[i], (record[0] + 16 * i) % 1024);
	CHECK_EQ(record[4], (record[0] + 63) % 1024);
	free(table);
}

TEST(other_orders_name_the_rows_of_a_later_step)
{
	static uint64_t record[ROOM_CAP], twin[ROOM_CAP];
	static uint8_t flags[ROOM_CAP], twin_flags[ROOM_CAP];

	for (unsigned round = 0; round < 200; round++) {
		struct steps s = any_steps(false);
		uint64_t distance = 1 + below(5);
		uint16_t *table = calloc(order_table_entries(&s.params) + 1, sizeof(*table));
		struct order o;

		STORY("round %u", round);
		CHECK_EQ(order_init(&o, &s.params, table), SHARD_OK);
		for (struct step_place p = {0}; !steps_ended(&s, &p); p.step++) {
			struct step_place later = {.step = p.step + distance};
			uint32_t rows =
				steps_ended(&s, &later)
					? 0
					: steps_fill(&s, &o, &later,
						     (struct step_rows){.record = twin, .row_flags = twin_flags});

			CHECK_EQ(steps_ahead(&s, &o, &p, distance, 4,
					     (struct step_rows){.record = record, .row_flags = flags}),
				 rows);
			CHECK(!rows || !memcmp(record, twin, rows * sizeof(*twin)));
		}
		free(table);
	}
}

TEST_MAIN()
