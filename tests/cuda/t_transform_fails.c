/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transform_fails.c - every call of the driver that transforming makes fails in turn, and memory
 * runs out
 *
 * With shard_transform_open() and its first launch, and with later ones: each is an error that
 * names the call, or none at all where there is another way; nothing stays behind, and the next
 * launch works.  Closing is a close whatever fails.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=mem_alloc,--wrap=mem_zalloc,--wrap=mem_array
 * LDFLAGS: -Wl,--wrap=mem_aligned
 * TIMEOUT: 600
 */
#include "shard_gpu.h"
#include "shard_transform.h"
#include "tests/child.h"
#include "tests/cuda/runs_out.h"
#include "tests/cuda/transforming.h"

#define REFUSED ": CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"

static struct transforming f;
static struct shard_batch batch; /* lent */
static struct shard_error err;

/*
 * A handle that has launched nothing, and a batch on the GPU whose loader makes no calls meanwhile.
 */
static void open_scene(enum stream_kind kind)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_CENTER, SHARD_F16, SHARD_CHW, 32);

	transforming_open(&f, (struct shard_loader_options){.batch_records = 9}, &o, 9, kind, 1);
	CHECK_OK(shard_loader_next_device(f.t.l, f.t.stream, &batch, &fixture_err));
	while (f.t.l->copy->pins.has_thread && !pins_knows(&f.t.l->copy->pins, f.t.l->o.slot_count - 1, 1))
		usleep(1000);
	fake->settle();
	fake->reset();
}

static int launch(void)
{
	return shard_transform_launch(f.there, &batch, NULL, 0, f.t.stream, TO(f), &err);
}

/* It goes on as if nothing had been, with the host's numbers. */
static void close_scene(bool locked)
{
	struct shard_batch b;

	CHECK_OK(shard_loader_release_after(f.t.l, &batch, f.t.stream, &fixture_err));
	CHECK_OK(shard_loader_next(f.host, &b, &fixture_err));
	CHECK_OK(shard_loader_release(f.host, &b, &fixture_err));
	transforming_steps(&f, 3);
	fake->settle();
	CHECK_SOUND_TRAINING();
	transforming_close(&f);
	CHECK_EQ(fake->sins(FAKE_UNREGISTERED), !locked);
	fake->reset();
	trainer_check_clean();
}

/* ---- closing: this comes first, as its children need a program that has no driver yet ---- */

static const char *const closing[] = {
	"cuCtxPushCurrent", "cuStreamSynchronize", "cuMemHostUnregister",	"cuMemFree",	  "cuModuleUnload",
	"cuCtxPopCurrent",  "cuEventDestroy",	   "cuDevicePrimaryCtxRelease", "cuStreamDestroy"};

/* In a child, whose driver is its own: what cannot be freed stays there. */
static int close_failing(const char *call)
{
	uint64_t before;

	open_scene(NON_BLOCKING);
	CHECK_OK(launch());
	before = fake->count(call);
	fake->fail(call, 1, 700);
	shard_transform_close(f.there);
	CHECK(fake->count(call) > before);
	shard_transform_close(f.here);
	close_loader(f.host); /* whose threads a sanitizer would miss */
	close_loader(f.t.l);
	return 0;
}

TEST(a_close_is_a_close_whatever_fails)
{
	pid_t pid;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t i = 0; i < COUNT(closing); i++) {
		STORY("%s", closing[i]);
		if (child_begin(&pid, 60))
			_exit(close_failing(closing[i]));
		CHECK_EQ(child_end(pid), 0);
	}
}

/* ---- calls ---- */

/*
 * The calls, how often the first launch and one behind it make them, and what is said; NULL:
 * nothing, as it then goes another way.
 */
static const struct {
	const char *call;
	unsigned first, later;
	const char *said;
} calls[] = {
	{"cuThreadExchangeStreamCaptureMode", 6, 2, "cuThreadExchangeStreamCaptureMode"},
	{"cuPointerGetAttribute", 2, 1, "finding the GPU of the "},
	{"cuStreamGetCtx", 1, 1, "cuStreamGetCtx, stream "},
	{"cuStreamIsCapturing", 1, 1, "cuStreamIsCapturing, stream "},
	{"cuCtxGetDevice", 1, 0, "reading the device of a context"},
	{"cuDevicePrimaryCtxGetState", 1, 0, "reading the device of a context"},
	{"cuDevicePrimaryCtxRetain", 1, 0, "reading the device of a context"},
	{"cuDeviceGetAttribute", 2, 0, NULL}, /* then it is taken for a usual GPU */
	{"cuCtxPushCurrent", 3, 1, NULL},     /* to ask whose it is, to open, to launch: see below */
	{"cuCtxPopCurrent", 3, 1, NULL},
	{"cuModuleLoadDataEx", 1, 0,
	 "cuModuleLoadDataEx cannot compile the kernels for this GPU: ptxas application "
	 "ptx input, line 1; fatal"},
	{"cuModuleGetFunction", 2, 0, "cuModuleGetFunction of transform_crop_"},
	{"cuMemHostRegister", 1, 0, NULL}, /* then the copy is a slow one */
	{"cuMemAlloc", 1, 0, "cuMemAlloc of 0.0 MiB"},
	{"cuStreamCreate", 1, 0, "cuStreamCreate"},
	{"cuMemcpyHtoDAsync", 1, 0, "copy of 0.0 MiB to the device"},
	{"cuStreamSynchronize", 1, 0, "cuStreamSynchronize"},
	{"cuEventCreate", 1, 0, "cuEventCreate"},
	{"cuEventRecord", 1, 1, "cuEventRecord, stream "},
	{"cuStreamWaitEvent", 1, 1, "cuStreamWaitEvent, stream "},
	{"cuLaunchKernel", 1, 1, "cuLaunchKernel of 1 x 9 blocks of 256 threads and "},
};

/* What an error of the nth of these calls begins with; NULL: it is none. */
static const char *said_of(size_t i, unsigned nth, bool later)
{
	if (!strcmp(calls[i].call, "cuCtxPushCurrent") || !strcmp(calls[i].call, "cuCtxPopCurrent"))
		return !later && nth == 1 ? "reading the device of a context" : calls[i].call;
	return calls[i].said;
}

/*
 * No call is made that the table does not know, nor more often: else one could fail that nobody has
 * tried.
 */
static void check_counts(bool later)
{
#define COUNT_ONE(name_, since_, until_, parameters_) total += fake->count(#name_);
	uint64_t total = 0, known = 0;

	FAKE_CALLS(COUNT_ONE)
	for (size_t i = 0; i < COUNT(calls); i++) {
		STORY("%s, %s", calls[i].call, later ? "later" : "first");
		CHECK_EQ(fake->count(calls[i].call), later ? calls[i].later : calls[i].first);
		known += fake->count(calls[i].call);
	}
	CHECK_EQ(total - fake->count("cuModuleLoadData"), known); /* which the fake's cuModuleLoadDataEx calls */
}

TEST(these_are_the_calls)
{
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	open_scene(NON_BLOCKING);
	CHECK_OK(launch());
	check_counts(false);
	fake->reset();
	CHECK_OK(launch());
	check_counts(true);
	fake->settle();
	close_scene(true);
}

static void fail_one(size_t i, unsigned nth, bool later)
{
	const char *said = said_of(i, nth, later);
	void *popped;

	STORY("%s, the %uth, of a %s launch", calls[i].call, nth, later ? "later" : "first");
	open_scene(NON_BLOCKING);
	if (later)
		CHECK_OK(launch());
	fake->fail(calls[i].call, nth, 700);
	CHECK_EQ(launch(), said ? SHARD_E_DEVICE : SHARD_OK);
	fake->fail(NULL, 0, 0);
	if (!strcmp(calls[i].call, "cuCtxPopCurrent"))
		CU_OK(cu.cuCtxPopCurrent(&popped)); /* which it could not do itself */
	if (said) {
		CHECK(!strncmp(err.message, said, strlen(said)));
		CHECK(strstr(err.message, REFUSED));
		CHECK_EQ(err.os_code, 700);
		CHECK_OK(launch());
	}
	close_scene(strcmp(calls[i].call, "cuMemHostRegister") != 0);
}

TEST(every_call_fails_in_turn)
{
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t i = 0; i < COUNT(calls); i++)
		for (int later = 0; later < 2; later++)
			for (unsigned nth = 1; nth <= (later ? calls[i].later : calls[i].first); nth++)
				fail_one(i, nth, later);
}

/* ---- memory ---- */

TEST(every_allocation_fails_in_turn)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_F16, SHARD_CHW, 32);
	bool ran_out = true;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (int nth = 0; ran_out; nth++) {
		struct shard_transform *transform = NULL;
		int rc;

		STORY("allocation %d", nth);
		open_scene(NON_BLOCKING);
		atomic_store(&allocations_left, nth);
		rc = shard_transform_open(&transform, f.t.l, "image", &o, &err);
		if (!rc)
			rc = shard_transform_launch(transform, &batch, NULL, 0, f.t.stream, TO(f), &err);
		ran_out = atomic_exchange(&allocations_left, -1) < 0;
		CHECK_EQ(rc, ran_out ? SHARD_E_MEMORY : SHARD_OK);
		CHECK(!rc || !strncmp(err.message, "no memory ", 10));
		if (transform && rc)
			CHECK_OK(shard_transform_launch(transform, &batch, NULL, 0, f.t.stream, TO(f), &fixture_err));
		shard_transform_close(transform);
		close_scene(true);
		CHECK(ran_out || nth >= 4); /* handle, scratch, device, kernels, page */
	}
}

TEST_MAIN()
