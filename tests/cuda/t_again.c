/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_again.c - a disk that delivers other bytes the second time, and damage without end, on their
 * way to a GPU: noticed with a pool and without
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full -Wl,--wrap=slot_fill
 */
#include "tests/cuda/pooling.h"
#include "tests/store/rot.h"

enum way { NO_POOL, POOL, WAYS };
static const char *const way_name[] = {"no pool", "a pool"};

static struct shard_loader_options options_of(enum way way)
{
	struct shard_loader_options o = {.batch_records = 7,
					 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
					 .thread_count = 1,
					 .slot_count = 2,
					 .order.run_records = 2,
					 .order.window_runs = 2,
					 .order.lane_count = 2};

	if (way != NO_POOL)
		o.gpu.pool_bytes = least_pool(o);
	return o;
}

/* Takes batches until it fails, or `most` were taken.  Returns the status. */
static int take(struct training *t, unsigned most, unsigned *count, struct shard_error *err)
{
	struct shard_batch b;
	int rc = SHARD_OK;

	for (*count = 0; rc >= 0 && *count < most;) {
		rc = shard_loader_next_device(t->l, t->stream, &b, err);
		*count += !rc;
		if (!rc)
			CHECK_OK(shard_loader_release_after(t->l, &b, t->stream, &fixture_err));
	}
	return rc;
}

/* The last shard rots after an epoch. */
static int take_twice(enum way way, uint32_t path, uint32_t check)
{
	const struct shard_dataset_options d = {.size = sizeof(d), .check = check};
	struct shard_loader_options o = options_of(way);
	struct shard_section images;
	struct training t;
	struct path p;
	unsigned count, steps;
	int rc;

	o.path = path;
	reopen(&d);
	snprintf(p.text, sizeof(p.text), "%.400s/4.shard", folder.text);
	images = section_of(p.text, 1, 0);
	open_pool(&t, o, 0);
	steps = (unsigned)shard_loader_step_count(t.l);
	CHECK_OK(take(&t, 2 * steps, &count, &fixture_err));
	for (uint64_t i = 0; i < 62; i++)
		if (!rot(p.text, images.offset + i * schema.group[0].stride + 5, ROT_BIT))
			SKIP("$TMPDIR is on a file system without O_DIRECT, or that lives in memory");
	rc = take(&t, 2 * steps, &count, &fixture_err);
	training_close(&t);
	/* Bits that are changed twice are as they were. */
	for (uint64_t i = 0; i < 62; i++)
		CHECK(rot(p.text, images.offset + i * schema.group[0].stride + 5, ROT_BIT));
	return rc;
}

TEST(damage_of_a_later_epoch_does_not_reach_a_gpu)
{
	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (enum way way = NO_POOL; way < WAYS; way++)
		for (uint32_t path = SHARD_PATH_MAP; path <= SHARD_PATH_PREAD; path++) {
			STORY("%s, path %u", way_name[way], path);
			CHECK_EQ(take_twice(way, path, SHARD_CHECK_DEVICE), SHARD_E_CORRUPT);
			CHECK(strstr(fixture_err.message, "4.shard: I44"));
			CHECK(take_twice(way, path, SHARD_CHECK_FIRST) >= 0); /* the control */
		}
}

/* 62 of 273 rows an epoch.  A pool counts a slab when it is fetched, and so may fail earlier. */
TEST(corrupt_most_bounds_batches_on_a_gpu)
{
	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (uint64_t i = 0; i < 62; i++)
		damage_record(&folder, 4, 0, i * schema.group[0].stride + 5);
	reopen(NULL);
	for (enum way way = NO_POOL; way < WAYS; way++)
		for (uint32_t policy = SHARD_CORRUPT_SUBSTITUTE; policy <= SHARD_CORRUPT_MASK; policy++) {
			struct shard_loader_options o = options_of(way);
			struct training t;
			unsigned count, few;

			STORY("%s, policy %u", way_name[way], policy);
			o.repair.on_corrupt = policy;
			o.repair.corrupt_most = 30;
			open_pool(&t, o, 0);
			CHECK_EQ(take(&t, 100, &few, &fixture_err), SHARD_E_CORRUPT);
			CHECK(strstr(fixture_err.message, " more would be; repair.corrupt_most is 30:"));
			training_close(&t);
			o.repair.corrupt_most = UINT64_MAX;
			open_pool(&t, o, 0);
			CHECK(take(&t, 100, &count, &fixture_err) >= 0);
			CHECK_EQ(count, 100);
			CHECK(few < 39);
			training_close(&t);
		}
	remove_tree(folder.text);
}

TEST_MAIN()
