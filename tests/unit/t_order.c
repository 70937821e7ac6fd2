/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_order.c - every order is a bijection, keeps its locality, and equals format/ORDER.md; ranks
 * share it out exactly
 *
 * Tables are allocated at exactly the entries asked for, so that the address sanitizer sees one too
 * many. tests/twin/order.sh compares the same code with format/shardorder.py on random parameters.
 */
#include "libshard/order/order.h"
#include "shard.h"
#include "tests/test.h"

static uint32_t random_state = 99;

static uint32_t random32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

static void *take(size_t bytes)
{
	void *p = calloc(bytes ? bytes : 1, 1);

	if (!p)
		abort();
	return p;
}

static uint16_t *prepare(struct order *o, const struct order_params *p)
{
	uint16_t *table = take(order_table_entries(p) * sizeof(*table));

	CHECK_EQ(order_init(o, p, table), SHARD_OK);
	return table;
}

/* Marks each record once; a value outside, or twice, fails. */
static void check_bijection(const struct order_params *p)
{
	uint8_t *seen = take(p->record_count);
	struct order o;
	uint16_t *table = prepare(&o, p);

	for (uint64_t i = 0; i < p->record_count; i++) {
		uint64_t record = order_at(&o, i);

		CHECK(record < p->record_count);
		CHECK(!seen[record]);
		seen[record] = 1;
	}
	free(table);
	free(seen);
}

static void check_feistel(uint64_t n, uint64_t key, uint64_t tweak)
{
	uint8_t *seen = take(n);
	struct feistel f;

	feistel_init(&f, n, key);
	CHECK(f.a <= f.b && f.a * f.b >= n && f.a * f.b - n < f.b);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t x = feistel_at(&f, tweak, i);

		CHECK(x < n);
		CHECK(!seen[x]);
		seen[x] = 1;
	}
	free(seen);
}

TEST(words_equal_order_md)
{
	/*
	 * The first output of SplitMix64 with state 0 is widely published: the constants are the
	 * right ones.
	 */
	CHECK_EQ(random_draw(0, 0), 0xe220a8397b1dcdaf);
	CHECK_EQ(random_draw(0, 1), 0x6e789e6aa1b965f4);
	CHECK_EQ(random_key(0, 0, 1), 0x2f32a78496c67c60);
	CHECK_EQ(random_key(1, 2, 3), 0xd0734750fde362b3);
	CHECK_EQ(random_draw(random_key(1, 2, 3), 1), 0xdd034ea7d44e8739);
	CHECK_EQ(random_below(UINT64_MAX, 10), 9);
	CHECK_EQ(random_below((uint64_t)1 << 63, 10), 5);
	CHECK_EQ(random_below(0, 10), 0);
}

TEST(orders_equal_order_md)
{
	static const struct {
		struct order_params p;
		uint64_t position, record;
	} rows[] = {
		{{.kind = ORDER_SEQUENTIAL, .record_count = 10, .seed = 1}, 3, 3},
		{{.kind = ORDER_ONE_LEVEL, .record_count = 10, .seed = 1}, 3, 6},
		{{.kind = ORDER_ONE_LEVEL, .record_count = 1281167, .seed = 1}, 1281166, 308214},
		{{.kind = ORDER_ONE_LEVEL, .record_count = 1000000000000, .seed = 42, .epoch = 7},
		 123456789012,
		 445970082249},
		{{.kind = ORDER_ONE_LEVEL, .record_count = ORDER_RECORDS_MAX, .seed = 42, .epoch = 7},
		 ORDER_RECORDS_MAX - 1,
		 2189659080961217322},
		{{ORDER_TWO_LEVELS, 1000000007, 1, 0, 128, 1, 40, 64}, 500000000, 172243159},
		{{ORDER_TWO_LEVELS, 1000000007, 1, 0, 128, 1, 40, 64}, 1000000006, 564649732},
		{{ORDER_TWO_LEVELS, 1000000007, 9, 3, 4096, 1024, 40, 64}, 777777777, 901982469},
		{{ORDER_TWO_LEVELS, ORDER_RECORDS_MAX, 9, 3, 4096, 1, 40, 64},
		 ORDER_RECORDS_MAX - 1,
		 3804428043752705748},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct order o;
		uint16_t *table = prepare(&o, &rows[i].p);

		STORY("row %zu", i);
		CHECK_EQ(order_at(&o, rows[i].position), rows[i].record);
		free(table);
	}
}

TEST(one_level_is_a_bijection_for_every_n_to_3000)
{
	for (uint64_t n = 0; n <= 3000; n++) {
		struct order_params p = {.kind = ORDER_ONE_LEVEL, .record_count = n, .seed = n, .epoch = 1};

		STORY("n %" PRIu64, n);
		check_bijection(&p);
	}
}

/*
 * Numbers four at a time, and one by one: with numbers and tweaks of all sizes, small networks and
 * the largest.
 */
TEST(four_at_once_equal_one_by_one)
{
	static const uint64_t n[] = {
		1, 2, 3, 17, 2560, 65537, 1281167, UINT64_C(1) << 31, (UINT64_C(1) << 32) + 1, PERMUTATION_N_MAX};
	uint64_t tweak[64], hi[2][64], lo[2][64];
	struct feistel f;

	for (size_t k = 0; k < sizeof(n) / sizeof(n[0]); k++) {
		feistel_init(&f, n[k], random_draw(7, k));
		for (uint32_t i = 0; i < 64; i++) {
			tweak[i] = i % 3 ? random_draw(k, i) : 0;
			hi[0][i] = hi[1][i] = i ? random_below(random_draw(k + 100, i), f.a) : f.a - 1;
			lo[0][i] = lo[1][i] = i ? random_below(random_draw(k + 200, i), f.b) : f.b - 1;
		}
		feistel_rounds(&f, tweak, hi[0], lo[0], 64);
		if (feistel_has_avx2())
			feistel_rounds_avx2(&f, tweak, hi[1], lo[1], 64);
		else
			feistel_rounds(&f, tweak, hi[1], lo[1], 64); /* this machine has nothing else */
		for (uint32_t i = 0; i < 64; i++) {
			CHECK_EQ(hi[1][i], hi[0][i]);
			CHECK_EQ(lo[1][i], lo[0][i]);
			CHECK(hi[0][i] < f.a && lo[0][i] < f.b);
		}
	}
}

TEST(network_is_a_bijection_for_every_n_to_3000)
{
	for (uint64_t n = 1; n <= 3000; n++) {
		STORY("n %" PRIu64, n);
		check_feistel(n, n * 77, 0);
		check_feistel(n, n, random_mix(n));
	}
}

/*
 * Every n to 70,000 takes a minute; one of each 61, which is a prime, is tried unless ALL_N is set.
 * The network's work is left to order_fill(), which fill_equals_at holds to order_at().
 */
TEST(one_level_is_a_bijection_to_70000)
{
	static uint64_t records[70000];
	static uint8_t seen[70000];
	uint64_t step = getenv("ALL_N") ? 1 : 61;

	for (uint64_t n = 3001; n <= 70000; n += step) {
		struct order_params p = {.kind = ORDER_ONE_LEVEL, .record_count = n, .seed = n, .epoch = 1};
		struct order o;
		uint16_t *table = prepare(&o, &p);

		STORY("n %" PRIu64, n);
		order_fill(&o, 0, 1, records, n);
		memset(seen, 0, n);
		for (uint64_t i = 0; i < n; i++) {
			if (records[i] >= n || seen[records[i]])
				test_fail(__FILE__, __LINE__, "position %" PRIu64 ": record %" PRIu64, i, records[i]);
			seen[records[i]] = 1;
		}
		free(table);
	}
}

TEST(one_level_is_a_bijection_at_awkward_n)
{
	static const uint64_t awkward[] = {65534,  65535,  65536,  65537,  65538,  65539,   65543,   65551,
					   66047,  66048,  66049,  66050,  69999,  70000,   70001,   99991,
					   131071, 131101, 262139, 524287, 999983, 1000000, 1002001, 1281167};

	for (size_t i = 0; i < sizeof(awkward) / sizeof(awkward[0]); i++) {
		struct order_params p = {.kind = ORDER_ONE_LEVEL, .record_count = awkward[i], .seed = 3};

		STORY("n %" PRIu64, awkward[i]);
		check_bijection(&p);
	}
	for (uint32_t k = 12; k <= 21; k++) /* each 4^k is a 2^k */
		for (int d = -1; d <= 1; d++) {
			struct order_params p = {.kind = ORDER_ONE_LEVEL,
						 .record_count = ((uint64_t)1 << k) + (uint64_t)d};

			STORY("n 2^%u%+d", k, d);
			check_bijection(&p);
		}
}

TEST(largest_n_stays_inside)
{
	for (uint64_t less = 0; less < 3; less++) {
		struct order_params p = {
			.kind = ORDER_ONE_LEVEL, .record_count = ORDER_RECORDS_MAX - less, .seed = less};
		struct order o;

		CHECK_EQ(order_table_entries(&p), 0);
		CHECK_EQ(order_init(&o, &p, NULL), SHARD_OK);
		for (uint64_t i = 0; i < 1000; i++) {
			CHECK(order_at(&o, i) < p.record_count);
			CHECK(order_at(&o, p.record_count - 1 - i) < p.record_count);
		}
	}
}

TEST(two_levels_are_a_bijection_for_every_small_shape)
{
	static const uint64_t r[] = {1, 2, 3, 7, 300}, u[] = {0, 1, 5, 8};
	static const uint32_t w[] = {1, 2, 5}, lanes[] = {1, 2, 3, 8};

	for (uint64_t n = 0; n <= 130; n++)
		for (unsigned i = 0; i < 5 * 4 * 3 * 4; i++) {
			struct order_params p = {ORDER_TWO_LEVELS, n, n, 2, r[i % 5], u[i / 5 % 4], w[i / 20 % 3],
						 lanes[i / 60]};

			STORY("N %" PRIu64 " r %" PRIu64 " w %u L %u u %" PRIu64, n, p.run_records, p.window_runs,
			      p.lane_count, p.phase_unit_records);
			check_bijection(&p);
		}
}

/*
 * As N runs over r L w neighbours, N mod r, F mod L and K mod w take each combination once; with
 * two windows in each lane.
 */
TEST(two_levels_are_a_bijection_for_every_remainder)
{
	for (uint64_t r = 1; r <= 6; r++)
		for (uint32_t lanes = 1; lanes <= 6; lanes++)
			for (uint32_t w = 1; w <= 6; w++) {
				uint8_t *met = take(r * lanes * w);

				for (uint64_t n = 2 * r * lanes * w; n < 3 * r * lanes * w; n++) {
					struct order_params p = {ORDER_TWO_LEVELS, n, n, 1, r, n % 2 ? 1 : r, w, lanes};
					uint64_t f = n / r, which = (n % r * lanes + f % lanes) * w + f / lanes % w;

					STORY("N %" PRIu64 " r %" PRIu64 " w %u L %u", n, r, w, lanes);
					CHECK(!met[which]++);
					check_bijection(&p);
				}
				free(met);
			}
}

TEST(two_levels_are_a_bijection_at_large_shapes)
{
	/*
	 * N, seed, epoch, r, u, w, L: every pairing of table and network for runs, windows and
	 * rest.
	 */
	static const struct order_params rows[] = {
		{ORDER_TWO_LEVELS, 200000, 1, 2, 16, 1, 40, 8},
		{ORDER_TWO_LEVELS, 200003, 1, 2, 1, 1, 7, 3},
		{ORDER_TWO_LEVELS, 300001, 1, 2, 2, 1, 40000, 1},
		{ORDER_TWO_LEVELS, 300001, 1, 2, 2, 0, 17000, 2},
		{ORDER_TWO_LEVELS, 400009, 1, 2, 1000, 1, 70, 1},
		{ORDER_TWO_LEVELS, 400009, 1, 2, 1000, 1000, 70, 5},
		{ORDER_TWO_LEVELS, 500000, 1, 2, 5000, 1, 1, 64},
		{ORDER_TWO_LEVELS, 500000, 1, 2, 5000, 1, 1, 200},
		{ORDER_TWO_LEVELS, 65536 * 3, 9, 0, 65536, 1, 1, 1},
		{ORDER_TWO_LEVELS, 65537 * 3, 9, 0, 65537, 1, 1, 1},
		{ORDER_TWO_LEVELS, 131072, 9, 0, 1, 1, 65536, 1},
		{ORDER_TWO_LEVELS, 131073, 9, 0, 1, 1, 65536, 1},
		{ORDER_TWO_LEVELS, 1000000, 5, 5, 3, 1, 4294967295u, 4294967295u},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("row %zu", i);
		check_bijection(&rows[i]);
	}
}

/* Every window of every lane delivers whole runs, as many as the layout says, and no run twice. */
static void check_locality(const struct order_params *p)
{
	uint64_t n = p->record_count, r = p->run_records, lane_runs = n / r / p->lane_count, position_end;
	uint64_t windows = lane_runs / p->window_runs ? lane_runs / p->window_runs : 1;
	uint32_t *taken = take(n / r * sizeof(*taken)); /* by which window, counted from 1 */
	uint32_t *got = take(n / r * sizeof(*got));	/* records of the run so far */
	struct order o;
	uint16_t *table = prepare(&o, p);
	uint32_t *window_of_tick = take(lane_runs * r * sizeof(*window_of_tick));
	uint64_t tick = 0;

	for (uint64_t v = 0; v < windows; v++) {
		uint64_t runs = lane_runs / windows + (v < lane_runs % windows);

		CHECK(windows == 1 || (runs >= p->window_runs && runs < 2 * (uint64_t)p->window_runs));
		for (uint64_t i = 0; i < runs * r; i++)
			window_of_tick[tick++] = (uint32_t)v;
	}
	CHECK_EQ(tick, lane_runs * r);
	position_end = lane_runs * r * p->lane_count;
	for (uint64_t position = 0; position < position_end; position++) {
		uint64_t lane = position % p->lane_count, place = (order_at(&o, position) + n - o.phase) % n;
		uint32_t window = window_of_tick[position / p->lane_count];
		uint32_t name = (uint32_t)(lane * windows + window) + 1;

		CHECK(place / r < n / r);
		CHECK(!taken[place / r] || taken[place / r] == name);
		taken[place / r] = name;
		CHECK(++got[place / r] <= r);
	}
	for (uint64_t run = 0; run < n / r; run++)
		CHECK(got[run] == r || !got[run]);
	free(table);
	free(taken);
	free(got);
	free(window_of_tick);
}

TEST(windows_deliver_whole_runs)
{
	for (int round = 0; round < 400; round++) {
		struct order_params p = {
			ORDER_TWO_LEVELS,    1 + random32() % 9000, random32(),		 1,
			1 + random32() % 40, random32() % 3,	    1 + random32() % 20, 1 + random32() % 12};

		STORY("N %" PRIu64 " r %" PRIu64 " w %u L %u u %" PRIu64, p.record_count, p.run_records, p.window_runs,
		      p.lane_count, p.phase_unit_records);
		if (p.record_count >= p.run_records)
			check_locality(&p);
	}
}

TEST(windows_differ_from_each_other)
{
	/*
	 * 40 windows of 512 records share one table: their permutations must not look alike, turned
	 * or not.
	 */
	struct order_params p = {ORDER_TWO_LEVELS, 8 * 16 * 160, 1, 0, 16, 0, 32, 4};
	struct order o;
	uint16_t *table = prepare(&o, &p);
	uint64_t worst = 0;

	for (uint64_t other = 1; other < 20; other++)
		for (uint64_t turn = 0; turn < 512; turn++) {
			uint64_t same = 0, lane = other % 4, first_tick = other / 4 * 512;

			for (uint64_t x = 0; x < 512; x++) {
				uint64_t a = order_at(&o, x * 4);
				uint64_t b = order_at(&o, (first_tick + (x + turn) % 512) * 4 + lane);

				same += a % 16 == b % 16; /* same place in a run */
			}
			worst = same > worst ? same : worst;
		}
	/* 512 tries at 1/16: mean 32, deviation 5.5; of 9,728 counts none is 6 deviations away. */
	CHECK(worst < 32 + 33);
	free(table);
}

TEST(fill_equals_at)
{
	for (int round = 0; round < 3000; round++) {
		struct order_params p = {(enum order_kind)(random32() % 3),
					 1 + random32() % (round % 2 ? 3000 : 300000),
					 random32(),
					 random32(),
					 1 + random32() % (round % 3 ? 5 : 2000),
					 random32() % 4,
					 1 + random32() % (round % 5 ? 10 : 30000),
					 1 + random32() % 70};
		uint64_t records[300], stride = 1 + random32() % 9, first = random32() % p.record_count;
		uint64_t count = 1 + (p.record_count - 1 - first) / stride;
		struct order o;
		uint16_t *table = prepare(&o, &p);

		count = count < 300 ? count : 300;
		order_fill(&o, first, stride, records, count);
		for (uint64_t i = 0; i < count; i++) {
			STORY("kind %d N %" PRIu64 " r %" PRIu64 " w %u L %u, position %" PRIu64, (int)p.kind,
			      p.record_count, p.run_records, p.window_runs, p.lane_count, first + i * stride);
			CHECK_EQ(records[i], order_at(&o, first + i * stride));
		}
		free(table);
	}
}

TEST(seed_and_epoch_change_the_order)
{
	for (int kind = ORDER_ONE_LEVEL; kind <= ORDER_TWO_LEVELS; kind++) {
		struct order_params p = {(enum order_kind)kind, 10000, 1, 1, 4, 1, 5, 4};
		struct order a, b, c;
		uint16_t *ta = prepare(&a, &p), *tb, *tc;
		unsigned same_epoch = 0, same_seed = 0;

		p.epoch = 2;
		tb = prepare(&b, &p);
		p.seed = 2;
		p.epoch = 1;
		tc = prepare(&c, &p);
		for (uint64_t i = 0; i < 10000; i++) {
			same_epoch += order_at(&a, i) == order_at(&b, i);
			same_seed += order_at(&a, i) == order_at(&c, i);
		}
		CHECK(same_epoch < 12 && same_seed < 12); /* one is expected */
		free(ta);
		free(tb);
		free(tc);
	}
}

TEST(parameters_outside_are_refused)
{
	static const struct order_params good = {ORDER_TWO_LEVELS, 100, 1, 1, 4, 1, 5, 4};
	struct order_params rows[8];
	struct order o;

	for (size_t i = 0; i < 8; i++)
		rows[i] = good;
	rows[0].record_count = ORDER_RECORDS_MAX + 1;
	rows[1].run_records = 0;
	rows[2].run_records = ORDER_RECORDS_MAX + 1;
	rows[3].phase_unit_records = ORDER_RECORDS_MAX + 1;
	rows[4].window_runs = 0;
	rows[5].lane_count = 0;
	rows[6].kind = (enum order_kind)3;
	rows[7].kind = ORDER_ONE_LEVEL;
	rows[7].record_count = UINT64_MAX;
	for (size_t i = 0; i < 8; i++) {
		STORY("row %zu", i);
		CHECK_EQ(order_init(&o, &rows[i], NULL), SHARD_E_ARGUMENT);
		CHECK_EQ(order_table_entries(&rows[i]), 0);
	}
}

/* The slow twin: walks over the positions and deals them out. */
static void check_share(const struct order_rank *k)
{
	uint64_t rows_seen = 0, want = k->first_position, steps = order_rank_steps(k);
	uint64_t delivered_end =
		k->last == ORDER_DROP ? k->first_position + steps * k->world * k->batch_records : UINT64_MAX;

	CHECK(delivered_end == UINT64_MAX || delivered_end <= k->record_count);
	for (uint64_t step = 0; step < steps; step++)
		for (uint32_t row = 0; row < order_rank_rows(k, step); row++, rows_seen++) {
			bool padded;
			uint64_t position = order_rank_position(k, step, row, &padded);

			while (want % k->world != k->rank)
				want++;
			CHECK_EQ(padded, want >= k->record_count);
			CHECK_EQ(position, want % k->record_count);
			want++;
		}
	if (k->last == ORDER_KEEP)
		CHECK_EQ(rows_seen, k->record_count - k->first_position);
	else
		CHECK_EQ(rows_seen, steps * k->batch_records);
}

TEST(shares_equal_dealing_positions_out)
{
	static const uint32_t worlds[] = {1, 2, 3, 8};

	for (int round = 0; round < 4000; round++) {
		uint64_t n = random32() % 400;
		struct order_rank k = {n, random32() % (n + 1),	  1 + random32() % 20,
				       0, worlds[random32() % 4], (enum order_last)(random32() % 3)};

		if (k.last == ORDER_KEEP)
			k.world = 1;
		for (k.rank = 0; k.rank < k.world; k.rank++) {
			STORY("N %" PRIu64 " P %" PRIu64 " B %u rank %u of %u, mode %d", n, k.first_position,
			      k.batch_records, k.rank, k.world, (int)k.last);
			CHECK_EQ(order_rank_check(&k), SHARD_OK);
			check_share(&k);
		}
	}
}

/*
 * Counts how often each position is delivered, without padding, by all ranks of k until step_end.
 */
static uint64_t deliver(struct order_rank k, uint64_t step_end, uint8_t *seen)
{
	uint64_t padded_count = 0;

	for (k.rank = 0; k.rank < k.world; k.rank++)
		for (uint64_t step = 0; step < step_end; step++)
			for (uint32_t row = 0; row < order_rank_rows(&k, step); row++) {
				bool padded;
				uint64_t position = order_rank_position(&k, step, row, &padded);

				padded_count += padded;
				seen[position] = (uint8_t)(seen[position] + !padded);
			}
	return padded_count;
}

TEST(shares_are_a_partition_when_the_world_changes)
{
	static const uint32_t worlds[] = {1, 2, 3, 8};

	for (int round = 0; round < 3000; round++) {
		uint64_t n = 1 + random32() % 500, done, padded, left;
		uint8_t *seen = take(n);
		struct order_rank before = {n, 0, 1 + random32() % 9, 0, worlds[random32() % 4], ORDER_DROP}, after;

		done = order_rank_steps(&before) ? random32() % order_rank_steps(&before) : 0;
		deliver(before, done, seen);
		after = before;
		after.first_position = done * before.world * before.batch_records;
		after.batch_records = 1 + random32() % 9;
		after.world = worlds[random32() % 4];
		after.last = round % 2 ? ORDER_PAD : ORDER_DROP;
		padded = deliver(after, order_rank_steps(&after), seen);
		left = n - after.first_position;
		STORY("N %" PRIu64 ", world %u, then %u from %" PRIu64, n, before.world, after.world,
		      after.first_position);
		if (after.last == ORDER_PAD) {
			CHECK_EQ(padded, order_rank_steps(&after) * after.world * after.batch_records - left);
			for (uint64_t i = 0; i < n; i++)
				CHECK_EQ(seen[i], 1);
		} else {
			uint64_t end = n - left % ((uint64_t)after.world * after.batch_records);

			CHECK_EQ(padded, 0);
			for (uint64_t i = 0; i < n; i++)
				CHECK_EQ(seen[i], i < end);
		}
		free(seen);
	}
}

/*
 * A job of 1,000 ranks goes on with 700 and then with 1,300, each time from where the steps before
 * it ended and `off` positions later.  Returns how many positions were not delivered once.
 */
static uint64_t not_once(uint64_t n, uint64_t off)
{
	static const uint32_t worlds[] = {1000, 700, 1300}, batches[] = {64, 91, 32};
	struct order_rank k = {.record_count = n, .last = ORDER_PAD};
	uint8_t *seen = take(n);
	uint64_t padded = 0, bad = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t steps;

		k.batch_records = batches[i];
		k.world = worlds[i];
		steps = i < 2 ? n / 3 / ((uint64_t)k.world * k.batch_records) : order_rank_steps(&k);
		CHECK_EQ(order_rank_check(&k), SHARD_OK);
		padded += deliver(k, steps, seen);
		k.first_position += steps * k.world * k.batch_records + off;
	}
	CHECK_EQ(padded, k.first_position - off - n);
	for (uint64_t i = 0; i < n; i++)
		bad += seen[i] != 1;
	free(seen);
	return bad;
}

TEST(a_thousand_ranks_deliver_each_position_once)
{
	CHECK_EQ(not_once(getenv("ALL_N") ? 100000007 : 1000003, 0), 0);
	CHECK_EQ(not_once(1000003, 1), 2); /* a control: each resume leaves one out */
}

TEST(shares_outside_are_refused)
{
	static const struct order_rank good = {100, 0, 4, 0, 2, ORDER_DROP};
	struct order_rank rows[8];

	CHECK_EQ(order_rank_check(&good), SHARD_OK);
	for (size_t i = 0; i < 8; i++)
		rows[i] = good;
	rows[0].record_count = ORDER_RECORDS_MAX + 1;
	rows[1].first_position = 101;
	rows[2].batch_records = 0;
	rows[3].rank = 2;
	rows[4].world = 0;
	rows[5].last = ORDER_KEEP;
	rows[6].last = (enum order_last)4;
	rows[7].world = rows[7].batch_records = 1 << 25;
	for (size_t i = 0; i < 8; i++) {
		STORY("row %zu", i);
		CHECK_EQ(order_rank_check(&rows[i]), SHARD_E_ARGUMENT);
	}
}

TEST(largest_share_does_not_wrap)
{
	struct order_rank k = {ORDER_RECORDS_MAX, ORDER_RECORDS_MAX - 1, 1 << 16, 0, 1, ORDER_PAD};
	bool padded;

	k.world = (uint32_t)1 << 31;
	k.rank = k.world - 1;
	CHECK_EQ(order_rank_check(&k), SHARD_OK);
	CHECK_EQ(order_rank_steps(&k), 1);
	CHECK_EQ(order_rank_position(&k, 0, 0, &padded), ORDER_RECORDS_MAX - 1); /* 2^62 - 1 is 2^31 - 1 mod 2^31 */
	CHECK(!padded);
	CHECK_EQ(order_rank_position(&k, 0, 1, &padded), ((uint64_t)1 << 31) - 1);
	CHECK(padded);
}

TEST_MAIN()
