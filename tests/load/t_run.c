/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_run.c - the units of a run are hashed together, once, and damage is told of where it lies
 */
#include "libshard/dataset/dataset.h"
#include "shard.h"
#include "tests/store/fixture.h"

#define SIDE	8u
#define RECORDS 4000u
#define BATCH	16u

static struct path folder, shard;
static struct shard_schema schema;
static uint32_t unit; /* records */

static void make_dataset(void)
{
	const uint64_t sizes[] = {RECORDS};

	schema = photo_schema(SIDE, SHARD_RAW);
	unit = schema.group[0].unit_records;
	CHECK(unit > 4 && schema.group[0].stride < 4096);
	new_folder(&folder, "t_run");
	write_dataset(folder.text, &schema, sizes, 1);
	tmp(&shard, "t_run.%d/0.shard", (int)getpid());
}

static struct shard_loader *open_loader(struct shard_dataset **ds, uint32_t check, struct shard_loader_options o)
{
	struct shard_dataset_options d = {.size = sizeof(d), .check = check};
	struct shard_loader *l;

	o.size = sizeof(o);
	o.batch_records = BATCH;
	o.order.seed = 5;
	CHECK_OK(shard_dataset_open(ds, folder.text, &d, &fixture_err));
	CHECK_OK(shard_loader_open(&l, *ds, &o, &fixture_err));
	return l;
}

static struct shard_loader_options windows(uint32_t threads)
{
	return (struct shard_loader_options){.order.shuffle = SHARD_SHUFFLE_WINDOWS,
					     .order.run_records = 10 * (uint64_t)unit,
					     .order.window_runs = 4,
					     .order.lane_count = 1,
					     .order.phase_unit_records = unit,
					     .slot_count = 2,
					     .thread_count = threads};
}

/* Units checked for three batches: the one that was taken and given back, and two ahead. */
static uint64_t checked_for_three(struct shard_loader *l)
{
	struct shard_loader_stats s;

	do
		shard_loader_stats(l, &s);
	while (s.filled_record_count < 3 * BATCH && !usleep(500));
	CHECK_EQ(s.filled_record_count, 3 * BATCH);
	return s.checked_unit_count;
}

/* Take batches until the epoch ends.  Returns the rows that have this flag. */
static uint64_t take(struct shard_loader *l, uint8_t flag, uint64_t *of_unit, uint64_t bad_unit)
{
	struct shard_batch b;
	uint64_t rows = 0;
	int rc;

	*of_unit = 0;
	while (!(rc = shard_loader_next(l, &b, &fixture_err))) {
		for (uint32_t i = 0; i < b.record_count; i++) {
			rows += (b.row_flags[i] & flag) != 0;
			*of_unit += b.record[i] / unit == bad_unit;
		}
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK_EQ(rc, SHARD_END);
	return rows;
}

TEST(units_of_a_run_are_hashed_together_and_once)
{
	uint64_t units[2], ignored;
	struct shard_loader_stats stats;
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_batch b;

	make_dataset();
	for (uint32_t g = 0; g < 2; g++)
		units[g] = (RECORDS + schema.group[g].unit_records - 1) / schema.group[g].unit_records;
	for (uint32_t threads = 1; threads <= 3; threads++) {
		STORY("%u threads", threads);
		l = open_loader(&ds, SHARD_CHECK_FIRST, windows(threads));
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		/* 48 rows, of a window of 40 units: some 28 of these without neighbours */
		CHECK(checked_for_three(l) >= 40);
		CHECK_EQ(take(l, 0xff, &ignored, 0), 0);
		CHECK_EQ(take(l, 0xff, &ignored, 0), 0);
		shard_loader_stats(l, &stats);
		CHECK_EQ(stats.checked_unit_count, units[0] + units[1]);
		shard_loader_close(l);
		shard_dataset_close(ds);
	}
	STORY("in order there are no runs");
	l = open_loader(
		&ds, SHARD_CHECK_FIRST,
		(struct shard_loader_options){.order.shuffle = SHARD_SEQUENTIAL, .slot_count = 2, .thread_count = 1});
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	CHECK(checked_for_three(l) <= 3 * (1 + BATCH / unit + 1));
	shard_loader_close(l);
	shard_dataset_close(ds);
	remove_tree(folder.text);
}

/* A damaged unit among those that are hashed beside a row is not that row's damage, but its own. */
TEST(damage_beside_a_row_is_told_of_where_it_lies)
{
	struct shard_loader_options o;
	struct shard_dataset *ds;
	struct shard_loader *l;
	uint64_t of_unit, bad_unit;

	make_dataset();
	bad_unit = RECORDS / unit / 2;
	file_flip(shard.text, section_of(shard.text, 1, 0).offset + bad_unit * unit * schema.group[0].stride + 7, 1);
	for (uint32_t threads = 1; threads <= 3; threads++) {
		STORY("%u threads", threads);
		o = windows(threads);
		o.repair.on_corrupt = SHARD_CORRUPT_MASK;
		l = open_loader(&ds, SHARD_CHECK_DEVICE, o);
		for (int epoch = 0; epoch < 2; epoch++) {
			CHECK_EQ(take(l, SHARD_ROW_MASKED, &of_unit, bad_unit), unit);
			CHECK_EQ(of_unit, unit);
		}
		shard_loader_close(l);
		shard_dataset_close(ds);
	}
	remove_tree(folder.text);
}

TEST_MAIN()
