/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_begin.c - a loader for a GPU that begins before the first next, so that its first batch can be
 * waited for in slices
 *
 * Filling stands still behind a gate until the test opens it.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full -Wl,--wrap=slot_fill
 */
#include "shard_gpu.h"
#include "tests/cuda/pooling.h"

#define SLICE_NS UINT64_C(20000000)

static struct shard_error err;

static const struct {
	const char *story;
	uint64_t pool_bytes;
} rows[] = {{"no pool", 0}, {"a pool of some windows", 450000}, {"a pool of all", SHARD_POOL_ALL}};

static void open_row(struct training *t, unsigned which, uint64_t seed)
{
	STORY("%s", rows[which].story);
	training_open(t,
		      (struct shard_loader_options){.batch_records = 6,
						    .order.shuffle = SHARD_SHUFFLE_WINDOWS,
						    .order.run_records = 2,
						    .order.window_runs = 2,
						    .order.lane_count = 2,
						    .order.seed = seed,
						    .gpu.pool_bytes = rows[which].pool_bytes},
		      (enum stream_kind)(seed % STREAM_KINDS), seed);
	gather_twin_open();
	set_gate(false);
	inject.meanwhile = behind_gate;
}

/* All calls of next of two epochs and a bit, with looks at what came. */
static void run_on(struct training *t)
{
	run(t, 2 * (unsigned)shard_loader_step_count(t->l) + 5, 1);
}

TEST(the_first_batch_is_waited_for_in_slices)
{
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned i = 0; i < COUNT(rows); i++) {
		open_row(&t, i, i);
		CHECK_OK(shard_loader_begin_device(t.l, t.stream, &fixture_err));
		for (unsigned slice = 0; slice < 3; slice++) {
			CHECK_EQ(shard_loader_wait(t.l, slice * SLICE_NS, &err), SHARD_E_TIMEOUT);
			CHECK_OK(shard_loader_begin_device(t.l, t.stream, &fixture_err)); /* does nothing more */
		}
		set_gate(true);
		CHECK_OK(shard_loader_wait(t.l, UINT64_MAX, &fixture_err));
		run_on(&t);
		CHECK_OK(shard_loader_begin_device(t.l, t.stream, &fixture_err));
		finish(&t);
	}
}

static void go_to(struct training *t, uint64_t epoch, uint64_t step)
{
	CHECK_OK(shard_loader_seek(t->l, epoch, step * 6, &fixture_err));
	wanted_seek(&wanted, epoch, step * 6);
}

TEST(it_begins_where_the_loader_was_sent_before_and_goes_where_it_is_sent_behind)
{
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned i = 0; i < 2 * COUNT(rows); i++) {
		open_row(&t, i / 2, 7 + i);
		go_to(&t, 2, 5);
		CHECK_OK(shard_loader_begin_device(t.l, t.stream, &fixture_err));
		CHECK_EQ(shard_loader_wait(t.l, SLICE_NS, &err), SHARD_E_TIMEOUT);
		if (i % 2) /* the user stops it, and goes on elsewhere */
			go_to(&t, 1, 3);
		set_gate(true);
		run_on(&t);
		finish(&t);
	}
}

TEST(what_cannot_begin_says_why_and_is_tried_again)
{
	static const char *const calls[] = {"cuMemAlloc", "cuStreamCreate", "cuEventCreate", "cuCtxPushCurrent"};
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned i = 0; i < COUNT(rows); i++)
		for (size_t c = 0; c < COUNT(calls); c++) {
			open_row(&t, i, 20 + i);
			set_gate(true);
			fake->fail(calls[c], 1, 2);
			CHECK_EQ(shard_loader_begin_device(t.l, t.stream, &err), SHARD_E_DEVICE);
			CHECK(strstr(err.message, "CUDA_ERROR_OUT_OF_MEMORY"));
			fake->fail(NULL, 0, 0);
			CHECK_OK(shard_loader_begin_device(t.l, t.stream, &fixture_err));
			run_on(&t);
			finish(&t);
		}
}

TEST_MAIN()
