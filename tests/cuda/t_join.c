/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_join.c - a trainer that looks at batches on another stream than it got them on, and which GPU a
 * stream is on
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full -Wl,--wrap=slot_fill
 */
#include "shard_gpu.h"
#include "tests/cuda/mistakes.h"

static struct shard_error err;

enum mistake { NO_MISTAKE, NOT_BEFORE, NOT_BEHIND, NO_JOIN };

/*
 * In a child: batches come on one stream and are looked at on another one, joined before and behind
 * that, but for the mistake.
 */
static int train_across(uint64_t seed)
{
	struct training t;
	struct shard_batch b;
	void *mine, *other;

	training_open(&t, (struct shard_loader_options){.batch_records = 9, .gpu.slot_count = 2},
		      (enum stream_kind)(seed % STREAM_KINDS), seed);
	CU_OK(cu.cuStreamCreate(&other, 1));
	mine = t.stream;
	/*
	 * What comes too early shows where copies are slow, what stays too short where looks are.
	 */
	fake->seed(seed, mistake == NOT_BEFORE || mistake == NO_JOIN ? 20000 : 1500);
	t.slow_us = mistake == NOT_BEFORE || mistake == NO_JOIN ? 0 : mistake == NOT_BEHIND ? 6000 : 2000;
	for (unsigned i = 0; i < 24; i++) {
		int rc = shard_loader_next_device(t.l, mine, &b, &err);

		if (!check_next(&wanted, &b, rc, &err))
			continue;
		if (mistake != NOT_BEFORE && mistake != NO_JOIN)
			CHECK_EQ(shard_loader_join(t.l, other, mine, &err), SHARD_OK);
		t.stream = other;
		launch_look(&t, &b, false);
		t.stream = mine;
		if (mistake != NOT_BEHIND && mistake != NO_JOIN)
			CHECK_EQ(shard_loader_join(t.l, mine, other, &err), SHARD_OK);
		CHECK_EQ(shard_loader_release_after(t.l, &b, mine, &err), SHARD_OK);
	}
	fake->settle();
	CU_OK(cu.cuStreamDestroy(other));
	return leave_and_tell(&t);
}

/* First, as children must not inherit the threads of a driver. */
TEST(a_stream_that_is_joined_finds_the_batch_and_keeps_it)
{
	static const struct mistake_row rows[] = {
		{"none", NO_MISTAKE, 0, true},
		{"a stream does not wait until the batch is there", NOT_BEFORE, GPU, false},
		{"the batch does not wait until it was looked at", NOT_BEHIND, GPU, false},
		{"neither", NO_JOIN, GPU, false}};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	check_mistakes(rows, COUNT(rows), train_across);
}

TEST(calls_that_are_wrong_are_told_so)
{
	struct training t;
	struct shard_batch b;
	void *other, *stream, *popped;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, 1);
	CHECK_EQ(shard_loader_join(t.l, t.stream, NULL, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "this loader has no GPU yet, so it cannot check these streams; call "
			       "shard_loader_next_device() first");
	CHECK_EQ(train_next(&t, &b), SHARD_OK);
	other = fake->context(1);
	CU_OK(cu.cuCtxPushCurrent(other));
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(shard_loader_join(t.l, i ? stream : t.stream, i ? t.stream : stream, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, "belongs to another context than the batches of this loader; "
					  "give a stream of their GPU, or use one loader per GPU"));
	}
	static const char *const calls[] = {"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuCtxPushCurrent"};
	for (size_t i = 0; i < COUNT(calls); i++) {
		fake->fail(calls[i], 1, 999);
		CHECK_EQ(shard_loader_join(t.l, t.stream, NULL, &err), SHARD_E_DEVICE);
		CHECK_EQ(err.os_code, 999);
		fake->fail(NULL, 0, 0);
	}
	CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
	CU_OK(cu.cuCtxPushCurrent(other));
	CU_OK(cu.cuStreamDestroy(stream));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	fake->drop_context(other);
	training_close(&t);
}

TEST(which_gpu_a_stream_is_on)
{
	void *context, *stream, *popped;
	uint32_t gpu_number = 9;

	trainer_open();
	CHECK_EQ(shard_stream_gpu(NULL, &gpu_number, &err), SHARD_OK);
	CHECK_EQ(gpu_number, 0);
	CHECK_STR(fake->leaks(), "");
	CHECK_EQ(fake->count("cuDevicePrimaryCtxRetain"), 0);
	context = fake->context(1);
	CU_OK(cu.cuCtxPushCurrent(context));
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CHECK_EQ(shard_stream_gpu(NULL, &gpu_number, &err), SHARD_OK);
	CHECK_EQ(gpu_number, 1);
	CU_OK(cu.cuCtxPopCurrent(&popped));
	CHECK_EQ(shard_stream_gpu(NULL, &gpu_number, &err), SHARD_OK);
	CHECK_EQ(gpu_number, 0);
	CHECK_EQ(shard_stream_gpu(stream, &gpu_number, &err), SHARD_OK);
	CHECK_EQ(gpu_number, 1);
	CU_OK(cu.cuCtxGetCurrent(&popped));
	CHECK(!popped);
	static const char *const calls[] = {"cuStreamGetCtx", "cuCtxPushCurrent", "cuCtxGetDevice", "cuDeviceGet"};
	for (size_t i = 0; i < COUNT(calls); i++) {
		fake->fail(calls[i], 1, 999);
		CHECK_EQ(shard_stream_gpu(stream, &gpu_number, &err), SHARD_E_DEVICE);
		CHECK(strstr(err.message, "finding the GPU of stream 0x"));
		fake->fail(NULL, 0, 0);
	}
	CU_OK(cu.cuCtxPushCurrent(context));
	CU_OK(cu.cuStreamDestroy(stream));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	fake->drop_context(context);
	trainer_check_clean();
}

TEST_MAIN()
