/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_capture.c - a trainer captures CUDA graphs: no call of the library breaks a capture, none goes
 * to a graph, and what a capture refuses is tried again
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=cuda_pin
 */
#include "tests/cuda/gather_twin.h"
#include "tests/cuda/transforming.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED, MODES };

static struct shard_error err;

/* End the capture, which nothing has broken. */
static void end_capture(void *stream)
{
	void *graph;

	CU_OK(cu.cuStreamEndCapture(stream, &graph));
	CU_OK(cu.cuGraphDestroy(graph));
}

/* ---- captures beside the loader ---- */

/* Memory, kernels, page-locks, batches, a transform: all of it while another stream captures. */
TEST(nothing_breaks_a_capture)
{
	struct shard_transform_options to = imagenet(SHARD_CROP_RANDOM, SHARD_F16, SHARD_CHW, 32);

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned round = 0; round < 2 * MODES * 2; round++) {
		unsigned pool = round % 2, mode = round / 2 % MODES, kind = round / 2 / MODES;
		struct shard_loader_stats s;
		struct transforming f;
		void *stream;
		int own;

		STORY("pool %u, mode %u, %s stream", pool, mode, kind ? "own" : "default");
		transforming_open(&f, pool_options(pool), &to, 9, kind ? NON_BLOCKING : LEGACY, round);
		gather_twin_open();
		CU_OK(cu.cuStreamCreate(&stream, 1));
		CU_OK(cu.cuStreamBeginCapture(stream, (int)mode));
		transforming_steps(&f, 6);
		own = RELAXED;
		CU_OK(cu.cuThreadExchangeStreamCaptureMode(&own));
		CHECK_EQ(own, GLOBAL); /* the thread got its mode back */
		fake->settle();
		shard_loader_stats(f.t.l, &s);
		CHECK_EQ(s.pageable_bytes, 0);
		CHECK_EQ(shard_loader_pin_problem(f.t.l, &err), SHARD_END);
		CHECK_SOUND_TRAINING();
		CU_OK(cu.cuThreadExchangeStreamCaptureMode(&own));
		shard_transform_close(f.there);
		shard_loader_close(f.t.l);
		f.there = NULL;
		f.t.l = NULL;
		end_capture(stream);
		CU_OK(cu.cuStreamDestroy(stream));
		transforming_close(&f);
		trainer_check_clean();
	}
}

/* A control: the same calls by a trainer who does not know of captures. */
TEST(an_unsafe_call_breaks_a_capture)
{
	struct training t;
	uint64_t memory;
	void *graph;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, pool_options(0), NON_BLOCKING, 1);
	CU_OK(cu.cuStreamBeginCapture(t.stream, GLOBAL));
	CHECK_EQ(cu.cuMemAlloc(&memory, 4096), 900);
	CHECK_EQ(cu.cuStreamEndCapture(t.stream, &graph), 901);
	CHECK_EQ(fake->sins(FAKE_BROKE_CAPTURE), 1);
	fake->reset();
	training_close(&t);
	trainer_check_clean();
}

/* ---- the captured stream ---- */

static void check_refused(int rc)
{
	CHECK_EQ(rc, SHARD_E_ARGUMENT);
	CHECK(strstr(err.message,
		     " is being captured into a CUDA graph, which would use the same batch again and again; "
		     "take, transform and give back batches before or after the capture"));
}

/* A blocking stream that captures refuses the legacy default stream, too. */
TEST(a_stream_that_is_captured_takes_no_batch)
{
	struct shard_transform_options to = imagenet(SHARD_CROP_RANDOM, SHARD_F16, SHARD_CHW, 32);

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned round = 0; round < 2 * MODES * 2; round++) {
		unsigned pool = round % 2, mode = round / 2 % MODES, legacy = round / 2 / MODES;
		struct shard_batch b, next;
		struct transforming f;
		void *captured, *beside, *stream;

		STORY("pool %u, mode %u, %s", pool, mode, legacy ? "default stream" : "the stream itself");
		transforming_open(&f, pool_options(pool), &to, 9, legacy ? LEGACY : NON_BLOCKING, round);
		gather_twin_open();
		CU_OK(cu.cuStreamCreate(&beside, 1));
		CU_OK(cu.cuStreamCreate(&captured, 0));
		stream = legacy ? captured : f.t.stream;
		CHECK_OK(shard_loader_next_device(f.t.l, f.t.stream, &b, &fixture_err));
		CU_OK(cu.cuStreamBeginCapture(stream, (int)mode));
		check_refused(shard_loader_next_device(f.t.l, f.t.stream, &next, &err));
		check_refused(shard_loader_begin_device(f.t.l, f.t.stream, &err));
		check_refused(shard_loader_join(f.t.l, f.t.stream, beside, &err));
		check_refused(shard_loader_join(f.t.l, beside, f.t.stream, &err));
		check_refused(shard_transform_launch(f.there, &b, NULL, 0, f.t.stream, TO(f), &err));
		check_refused(shard_loader_release_after(f.t.l, &b, f.t.stream, &err));
		end_capture(stream);
		CHECK_OK(shard_loader_release_after(f.t.l, &b, f.t.stream, &fixture_err));
		CHECK_OK(shard_loader_next_device(f.t.l, f.t.stream, &next, &fixture_err));
		CHECK_EQ(next.step, 1); /* what was refused was no step */
		CHECK_OK(shard_loader_release_after(f.t.l, &next, f.t.stream, &fixture_err));
		fake->settle();
		CU_OK(cu.cuStreamDestroy(beside));
		CU_OK(cu.cuStreamDestroy(captured));
		transforming_close(&f);
		trainer_check_clean();
	}
}

/* ---- page-locks that a capture refuses ---- */

/* As with a driver or a trainer that ignores the relaxed mode. */
TEST(a_page_lock_is_tried_once_more_behind_a_capture)
{
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned round = 0; round < 4 * 3; round++) {
		unsigned nth = 1 + round % 4, pool = round / 4;
		struct shard_loader_stats s;
		struct training t;

		STORY("page-lock %u, pool %u", nth, pool);
		training_open(&t, pool_options(pool), NON_BLOCKING, round);
		gather_twin_open();
		fake->fail("cuMemHostRegister", nth, round % 2 ? 900 : 901);
		train(&t, 20, 1);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		shard_loader_stats(t.l, &s);
		CHECK_EQ(s.pageable_bytes, 0);
		CHECK_EQ(s.pinned_bytes, shard_loader_ring_bytes(t.l));
		CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_END);
		training_close(&t);
		trainer_check_clean();
	}
}

/* A trainer that captures all the time: the other slots are page-locked all the same. */
static unsigned refusals;

int __real_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *e);
int __wrap_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *e);

int __wrap_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *e)
{
	static const void *refused;

	if (refusals && (refusals == 2 || memory == refused)) { /* one slot, both times */
		refused = memory;
		refusals--;
		fake->fail("cuMemHostRegister", 1, 900);
	}
	return __real_cuda_pin(d, memory, bytes, e);
}

TEST(a_slot_that_is_refused_twice_is_told_and_the_others_go_on)
{
	struct shard_loader_stats s;
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, pool_options(0), NON_BLOCKING, 1);
	refusals = 2;
	train(&t, 20, 1);
	train_give_all(&t);
	CHECK_EQ(refusals, 0);
	CHECK_SOUND_TRAINING();
	shard_loader_stats(t.l, &s);
	CHECK(s.pageable_bytes > 0 && s.pageable_bytes < s.device_bytes);
	CHECK_EQ(s.pinned_bytes, shard_loader_ring_bytes(t.l) / 4 * 3);
	CHECK_OK(shard_loader_pin_problem(t.l, &err));
	CHECK(strstr(err.message, "slot 0 of 4 of the ring was refused twice while a CUDA graph was captured "
				  "(cuMemHostRegister of 0.1 MiB: error 900"));
	CHECK(strstr(err.message, "take a batch before the first capture"));
	training_close(&t);
	CHECK_STR(fake->leaks(), "");
}

TEST_MAIN()
