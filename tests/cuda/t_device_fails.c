/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_device_fails.c - every call of the driver fails in turn, while a loader starts, delivers and
 * closes, with a pool and without
 *
 * A failure is an error with the driver's name for it, or none at all where there is another way;
 * never a crash, a hang, a wrong byte or something left behind.  A job goes on behind it, after a
 * seek.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=mem_alloc,--wrap=mem_zalloc,--wrap=mem_array
 * LDFLAGS: -Wl,--wrap=mem_aligned
 * TIMEOUT: 600
 */
#include "shard_gpu.h"
#include "tests/child.h"
#include "tests/cuda/pooling.h"
#include "tests/cuda/runs_out.h"

#define STEPS 14u

static struct training t;
static unsigned errors;
static bool pooled;

static void open_job(enum stream_kind kind, uint64_t seed)
{
	struct shard_loader_options o = {.batch_records = 9};

	if (pooled) {
		o.order.shuffle = SHARD_SHUFFLE_WINDOWS;
		o.order.run_records = 3;
		o.order.window_runs = o.order.lane_count = 1;
		o.gpu.pool_bytes = seed % 2 ? SHARD_POOL_ALL : 600000;
	}
	training_open(&t, o, kind, seed);
	gather_twin_open();
}

/* ---- a job ---- */

/* A call said that the driver refused. */
static void note_error(const struct shard_error *err)
{
	errors++;
	CHECK_EQ(err->status, SHARD_E_DEVICE);
	CHECK_EQ(err->os_code, 700);
	CHECK(strstr(err->message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
}

/* One step, which may fail; then from there on. */
static void step(void)
{
	struct shard_error err = {.message = ""};
	struct shard_batch b;
	int rc = shard_loader_next_device(t.l, t.stream, &b, &err);
	uint64_t epoch, position;

	if (rc < 0) {
		note_error(&err);
		shard_loader_tell(t.l, &epoch, &position);
		CHECK_OK(shard_loader_seek(t.l, epoch, position, &fixture_err));
		wanted_seek(&wanted, epoch, position);
		return;
	}
	if (check_next(&wanted, &b, rc, &err))
		launch_look(&t, &b, false);
	for (int try = 0; rc == SHARD_OK; try++) {
		CHECK(try < 3);
		rc = shard_loader_release_after(t.l, &b, t.stream, &err);
		if (!rc)
			break;
		note_error(&err);
		rc = SHARD_OK;
	}
}

/* Does the nth of these calls come at all, and what becomes of it? */
static bool survives(const char *call, unsigned nth, bool while_closing)
{
	struct shard_error why;
	uint64_t before;
	bool came;

	open_job(strcmp(call, "cuCtxGetCurrent") ? NON_BLOCKING : LEGACY, nth);
	fake->seed(nth, 200);
	errors = 0;
	if (!while_closing)
		fake->fail(call, nth, 700);
	for (unsigned i = 0; i < STEPS; i++)
		step();
	before = fake->count(call);
	fake->fail(NULL, 0, 0);
	if (shard_loader_pin_problem(t.l, &why) == SHARD_OK) { /* as when a page-lock is refused */
		note_error(&why);
		fake->reset();
	}
	if (while_closing)
		fake->fail(call, nth, 700);
	close_loader(t.l);
	came = while_closing ? fake->count(call) > before : before >= nth;
	fake->fail(NULL, 0, 0);
	trainer_leave(&t);
	CHECK_SOUND_TRAINING();
	CHECK(wanted.epoch * 11 + wanted.first / 9 + wanted.step > 5); /* it went on behind the failure */
	if (!while_closing)
		trainer_check_clean();
	return came;
}

/* How a child ends that does this; its driver is its own, and what cannot be freed stays there. */
static int in_child(void (*act)(const char *call), const char *call)
{
	pid_t pid;

	if (child_begin(&pid, 60)) {
		act(call);
		_exit(0);
	}
	return child_end(pid);
}

/* These come first: their children need a program that has no driver yet. */

static void close_failing(const char *call)
{
	CHECK(survives(call, 1, true));
}

TEST(a_close_is_a_close_whatever_fails)
{
	static const char *const closing[] = {"cuCtxPushCurrent",   "cuCtxPopCurrent", "cuStreamSynchronize",
					      "cuEventSynchronize", "cuMemFree",       "cuMemHostUnregister",
					      "cuEventDestroy",	    "cuStreamDestroy", "cuDevicePrimaryCtxRelease",
					      "cuModuleUnload"};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t i = 0; i < 2 * COUNT(closing) - 1; i++) { /* the last is a pool's alone */
		pooled = i >= COUNT(closing) - 1;
		STORY("%s%s", closing[i - (pooled ? COUNT(closing) - 1 : 0)], pooled ? ", with a pool" : "");
		CHECK_EQ(in_child(close_failing, closing[i - (pooled ? COUNT(closing) - 1 : 0)]), 0);
	}
	pooled = false;
}

/* As soon as the host waits for a slot. */
static void *break_down_soon(void *unused)
{
	for (bool waits = false; !waits; usleep(500)) {
		pthread_mutex_lock(&t.l->feed->crew.lock);
		waits = t.l->feed->crew.awaits_slot;
		pthread_mutex_unlock(&t.l->feed->crew.lock);
	}
	fake->break_down(700);
	return unused;
}

/*
 * A kernel of the trainer's dies while the host waits for a slot: nothing on that GPU ever works
 * again, no slot comes back, and nobody would say so if the host did not look.
 */
static void break_down(const char *waiting)
{
	struct shard_error err = {.message = ""};
	struct shard_batch b;
	pthread_t thread;

	training_open(&t, (struct shard_loader_options){.batch_records = 9, .slot_count = 2, .gpu.slot_count = 4},
		      NON_BLOCKING, 1);
	fake->hold(1);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(train_next(&t, &b), SHARD_OK);
	CHECK_EQ(fake->count("cuLaunchHostFunc"), 2);
	CHECK_EQ(pthread_create(&thread, NULL, break_down_soon, NULL), 0);
	if (waiting) /* as Python does, which looks for signals from time to time */
		CHECK_OK(shard_loader_wait(t.l, UINT64_C(30000000000), &fixture_err));
	CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_DEVICE);
	note_error(&err);
	CHECK(waiting || strstr(err.message, "work queued earlier has failed"));
	pthread_join(thread, NULL);
	CHECK_OK(shard_loader_seek(t.l, 0, 0, &fixture_err));
	CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_DEVICE);
	close_loader(t.l);
}

TEST(a_driver_that_breaks_down_is_an_error_and_no_hang)
{
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	CHECK_EQ(in_child(break_down, NULL), 0);
	CHECK_EQ(in_child(break_down, "waiting"), 0);
}

/* A machine without a GPU. */
static void train_without(const char *call)
{
	struct shard_error err = {.message = ""};
	struct shard_batch b;

	fake = fake_find();
	CHECK(fake);
	fake->fail(call, 1, 100);
	inject_nothing();
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 9});
	t.l = loader_of(&wanted);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(shard_loader_next_device(t.l, NULL, &b, &err), SHARD_E_UNSUPPORTED);
		CHECK_STR(err.message, "cuInit: CUDA_ERROR_NO_DEVICE");
	}
	for (int i = 0; i < 20; i++)
		if (wanted_next(&wanted, t.l, &b) == SHARD_OK) {
			CHECK_EQ(shard_loader_release_after(t.l, &b, NULL, &err), SHARD_E_UNSUPPORTED);
			CHECK_OK(shard_loader_release(t.l, &b, &fixture_err));
		}
	CHECK_NO_COMPLAINT(&wanted);
	close_loader(t.l);
}

TEST(without_a_gpu_the_host_goes_on)
{
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	CHECK_EQ(in_child(train_without, "cuInit"), 0);
}

/* Calls that a loader makes, and whether a failure of one is an error of next or release_after. */
static const struct {
	const char *call;
	bool is_told, many;
} calls[] = {{"cuCtxGetCurrent", true, false},
	     {"cuStreamGetCtx", true, true},
	     {"cuCtxGetDevice", true, false},
	     {"cuDevicePrimaryCtxGetState", true, false},
	     {"cuDevicePrimaryCtxRetain", true, false},
	     {"cuCtxPushCurrent", true, true},
	     {"cuStreamCreate", true, true},
	     {"cuEventCreate", true, true},
	     {"cuMemAlloc", true, false},
	     {"cuMemcpyHtoDAsync", true, true},
	     {"cuEventRecord", true, true},
	     {"cuStreamWaitEvent", true, true},
	     {"cuLaunchHostFunc", true, true}};

/* Without a pool, and with one. */
static const char *open_kind(int kind)
{
	pooled = kind > 0;
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	return pooled ? ", with a pool" : "";
}

/* The job begins again behind a failure, goes well, and ends. */
static void train_anew(void)
{
	fake->settle();
	CHECK_OK(shard_loader_seek(t.l, 0, 0, &fixture_err));
	train(&t, STEPS, 0);
	CHECK_SOUND_TRAINING();
	training_close(&t);
}

static void fail_allocations(const char *where)
{
	bool ran_out = true;

	for (int nth = 0; ran_out; nth++) {
		struct shard_error err = {.message = ""};
		struct shard_batch b;
		int rc;

		STORY("allocation %d%s", nth, where);
		open_job(NON_BLOCKING, (uint64_t)nth);
		atomic_store(&allocations_left, nth);
		rc = shard_loader_next_device(t.l, t.stream, &b, &err);
		ran_out = atomic_exchange(&allocations_left, -1) < 0;
		/* of a thread that is ahead, another call would have told */
		CHECK(rc == SHARD_OK || rc == SHARD_E_MEMORY);
		CHECK(!rc || err.message[0]);
		CHECK(ran_out || !rc);
		if (!rc)
			CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
		train_anew();
		trainer_check_clean();
		CHECK(ran_out ? nth < 500 : nth > 20); /* what is allocated comes to an end */
	}
}

TEST(every_allocation_fails_in_turn)
{
	for (int kind = 0; kind < 2; kind++)
		fail_allocations(open_kind(kind));
	open_kind(0);
}

static void fail_calls(const char *where)
{
	for (size_t i = 0; i < COUNT(calls); i++) {
		unsigned came = 0, told = 0;

		for (unsigned nth = 1; nth <= (calls[i].many ? 40u : 3u); nth++) {
			bool now;

			STORY("%s, the %uth%s", calls[i].call, nth, where);
			now = survives(calls[i].call, nth, false);
			came += now;
			told += now && errors;
			if (!now)
				break;
		}
		STORY("%s", calls[i].call);
		CHECK(!calls[i].is_told || told > 0);
		CHECK(!calls[i].many || came >= 2);
	}
}

TEST(every_call_fails_in_turn)
{
	for (int kind = 0; kind < 2; kind++)
		fail_calls(open_kind(kind));
	open_kind(0);
}

/* The context then stays current in the thread, so the trainer takes it off by hand. */
TEST(a_context_that_cannot_be_left_is_told_once)
{
	unsigned told = 0;

	for (unsigned nth = 1; nth <= 12; nth++) {
		struct shard_error err = {.message = ""};
		struct shard_batch b;
		void *popped;
		int rc;

		STORY("the %uth", nth);
		open_job(NON_BLOCKING, nth);
		fake->fail("cuCtxPopCurrent", nth, 700);
		rc = shard_loader_next_device(t.l, t.stream, &b, &err);
		fake->fail(NULL, 0, 0);
		if (rc) {
			note_error(&err);
			told++;
			CU_OK(cu.cuCtxPopCurrent(&popped));
		} else
			CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
		train_anew();
	}
	CHECK(told > 1);
}

/* The trainer launches kernels as well, so these are failed one by one, at once. */
TEST(calls_for_the_pools_kernel_fail)
{
	static const struct {
		const char *call, *said;
	} rows[] = {{"cuModuleLoadDataEx", "cuModuleLoadDataEx cannot compile the kernels for this GPU: ptxas "
					   "application ptx input, line 1; fatal: CUDA_ERROR_ILLEGAL_ADDRESS (an "
					   "illegal memory access was encountered)"},
		    {"cuModuleGetFunction", "cuModuleGetFunction of gather_rows: CUDA_ERROR_ILLEGAL_ADDRESS (an "
					    "illegal memory access was encountered)"},
		    {"cuLaunchKernel", "cuLaunchKernel of 9 x 1 blocks of 256 threads and 0 bytes: "
				       "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"}};
	struct shard_error err;
	struct shard_batch b;

	pooled = true;
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t i = 0; i < COUNT(rows); i++)
		for (uint64_t seed = 0; seed < 2; seed++) {
			STORY("%s, seed %" PRIu64, rows[i].call, seed);
			open_job(NON_BLOCKING, seed);
			fake->fail(rows[i].call, 1, 700);
			for (int again = 0; again < 2; again++) {
				CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_DEVICE);
				CHECK_STR(err.message, rows[i].said);
			}
			CHECK_OK(shard_loader_seek(t.l, 0, 0, &fixture_err));
			train(&t, STEPS, 1);
			train_give_all(&t);
			CHECK_SOUND_TRAINING();
			training_close(&t);
			trainer_check_clean();
		}
}

TEST_MAIN()
