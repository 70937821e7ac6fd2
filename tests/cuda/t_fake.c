/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_fake.c - the driver without a GPU does what cuda.h says: orders that must hold, and orders that
 * must not be relied on
 *
 * Every rule stands beside its opposite: what an event, a stream or the legacy default stream
 * orders never comes out wrong in many tries, and what nothing orders does.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 */
#include <stdatomic.h>

#include "tests/child.h"
#include "tests/cuda/trainer.h"

#define BYTES 4096u
#define TRIES 40

static uint8_t host[4][BYTES] __attribute__((aligned(4096)));
static void *context;

static void scene_open(void)
{
	trainer_open();
	CU_OK(cu.cuDevicePrimaryCtxRetain(&context, 70));
	CU_OK(cu.cuCtxPushCurrent(context));
}

static void scene_close(void)
{
	void *popped;

	fake->settle();
	CU_OK(cu.cuCtxPopCurrent(&popped));
	CHECK(popped == context);
	CU_OK(cu.cuDevicePrimaryCtxRelease(70));
}

/* ---- order ---- */

enum tie { NOTHING, SAME_STREAM, EVENT, EVENT_BEFORE_RECORD, NULL_FIRST, NULL_SECOND, NULL_NON_BLOCKING, SYNCHRONIZE };

static atomic_uint turn;
static unsigned seen[2];

static void note(void *which)
{
	seen[(uintptr_t)which] = atomic_fetch_add(&turn, 1);
}

/* Two calls, tied together somehow: does the first come first? */
static bool in_order(enum tie tie, uint64_t seed)
{
	void *first, *second, *event;
	bool null_first = tie == NULL_FIRST || tie == NULL_NON_BLOCKING;

	fake->seed(seed, 300);
	atomic_store(&turn, 0);
	CU_OK(cu.cuStreamCreate(&first, 0));
	CU_OK(cu.cuStreamCreate(&second, tie == NULL_NON_BLOCKING));
	CU_OK(cu.cuEventCreate(&event, 2));
	if (tie == EVENT_BEFORE_RECORD)
		CU_OK(cu.cuStreamWaitEvent(second, event, 0));
	CU_OK(cu.cuLaunchHostFunc(null_first ? DEFAULT_STREAM : first, note, (void *)0));
	CU_OK(cu.cuEventRecord(event, null_first ? DEFAULT_STREAM : first));
	if (tie == EVENT)
		CU_OK(cu.cuStreamWaitEvent(second, event, 0));
	if (tie == SYNCHRONIZE)
		CU_OK(cu.cuEventSynchronize(event));
	CU_OK(cu.cuLaunchHostFunc(tie == SAME_STREAM   ? first
				  : tie == NULL_SECOND ? DEFAULT_STREAM
						       : second,
				  note, (void *)1));
	CU_OK(cu.cuCtxSynchronize());
	CU_OK(cu.cuEventDestroy(event));
	CU_OK(cu.cuStreamDestroy(first));
	CU_OK(cu.cuStreamDestroy(second));
	return seen[0] < seen[1];
}

TEST(what_is_tied_keeps_its_order_and_nothing_else_does)
{
	static const struct {
		const char *story;
		enum tie tie;
		bool always;
	} rows[] = {{"two streams", NOTHING, false},
		    {"one stream", SAME_STREAM, true},
		    {"an event between two streams", EVENT, true},
		    {"an event that was recorded too late", EVENT_BEFORE_RECORD, false},
		    {"the null stream first", NULL_FIRST, true},
		    {"the null stream second", NULL_SECOND, true},
		    {"the null stream and one that is non-blocking", NULL_NON_BLOCKING, false},
		    {"the host waited between them", SYNCHRONIZE, true}};

	scene_open();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned kept = 0;

		STORY("%s", rows[i].story);
		for (uint64_t seed = 0; seed < TRIES; seed++)
			kept += in_order(rows[i].tie, seed);
		CHECK(rows[i].always ? kept == TRIES : kept < TRIES);
		CHECK(kept > 0); /* nor does it reverse them */
	}
	scene_close();
	trainer_check_clean();
}

TEST(queries_tell_what_is_done)
{
	void *stream, *event;

	scene_open();
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuEventCreate(&event, 2));
	CU_OK(cu.cuEventQuery(event)); /* was never recorded */
	fake->hold(1);
	CU_OK(cu.cuLaunchHostFunc(stream, note, NULL));
	CU_OK(cu.cuEventRecord(event, stream));
	CHECK_EQ(cu.cuEventQuery(event), 600);
	CHECK_EQ(cu.cuStreamQuery(stream), 600);
	CHECK_EQ(fake->pending(), 2);
	fake->hold(0);
	CU_OK(cu.cuStreamSynchronize(stream));
	CU_OK(cu.cuEventQuery(event));
	CU_OK(cu.cuStreamQuery(stream));
	CHECK_EQ(fake->count("cuEventQuery"), 3);
	CHECK_EQ(fake->count("cu*Synchronize"), 1);
	CU_OK(cu.cuEventDestroy(event));
	CU_OK(cu.cuStreamDestroy(stream));
	scene_close();
	trainer_check_clean();
}

/*
 * An event is recorded again: a stream that waited for the first record does not wait for the
 * second.
 */
TEST(a_wait_is_for_the_record_of_its_moment)
{
	void *a, *b, *event;

	scene_open();
	CU_OK(cu.cuStreamCreate(&a, 1));
	CU_OK(cu.cuStreamCreate(&b, 1));
	CU_OK(cu.cuEventCreate(&event, 2));
	CU_OK(cu.cuEventRecord(event, a));
	CU_OK(cu.cuStreamWaitEvent(b, event, 0));
	CU_OK(cu.cuStreamWaitEvent(a, event, 0));
	/* behind the wait in b: were it for this one, nothing would ever go on */
	CU_OK(cu.cuEventRecord(event, b));
	CU_OK(cu.cuStreamSynchronize(b));
	CU_OK(cu.cuStreamSynchronize(a));
	CU_OK(cu.cuEventDestroy(event));
	CU_OK(cu.cuStreamDestroy(a));
	CU_OK(cu.cuStreamDestroy(b));
	scene_close();
	trainer_check_clean();
}

/* ---- memory ---- */

TEST(copies_are_late_and_device_memory_is_not_the_hosts)
{
	void *stream;
	uint64_t device;
	pid_t pid;

	scene_open();
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuMemAlloc(&device, BYTES));
	CHECK_EQ(*(uint8_t *)fake->at(device + BYTES - 1), 0xa5);
	CHECK(!fake->at(device + BYTES));
	CU_OK(cu.cuMemHostRegister(host, sizeof(host), 1));
	memset(host, 1, sizeof(host));
	fake->hold(1);
	CU_OK(cu.cuMemcpyHtoDAsync(device, host[0], BYTES, stream));
	CU_OK(cu.cuMemcpyDtoHAsync(host[1], device, BYTES, stream));
	memset(host[0], 2, BYTES); /* too early: the copy takes what is there when it runs */
	CHECK_EQ(*(uint8_t *)fake->at(device), 0xa5);
	fake->hold(0);
	CU_OK(cu.cuStreamSynchronize(stream));
	CHECK_EQ(*(uint8_t *)fake->at(device), 2);
	CHECK_EQ(host[1][BYTES - 1], 2);
	CHECK_EQ(cu.cuMemcpyHtoDAsync(device + 1, host[0], BYTES, stream), 1);
	if (child_begin(&pid, 20)) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(0);
		_exit(*(volatile uint8_t *)(uintptr_t)device & 0); /* a host that follows the address */
	}
	CHECK(child_end(pid) != 0);
	CU_OK(cu.cuMemHostUnregister(host));
	CU_OK(cu.cuMemFree(device));
	CU_OK(cu.cuStreamDestroy(stream));
	scene_close();
	trainer_check_clean();
}

TEST(page_locks_are_kept_account_of)
{
	void *stream;
	uint64_t device;
	unsigned kind = 0;

	scene_open();
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuMemAlloc(&device, sizeof(host)));
	CHECK_EQ(cu.cuPointerGetAttribute(&kind, 2, (uintptr_t)host), 1);
	CU_OK(cu.cuMemHostRegister(host[0], BYTES, 1));
	CU_OK(cu.cuMemHostRegister(host[1], BYTES, 1));
	CHECK_EQ(cu.cuMemHostRegister(host[1], 2 * BYTES, 1), 712);
	CU_OK(cu.cuPointerGetAttribute(&kind, 2, (uintptr_t)host));
	CHECK_EQ(kind, 1);
	CU_OK(cu.cuPointerGetAttribute(&kind, 2, device));
	CHECK_EQ(kind, 2);
	CHECK_EQ(cu.cuMemcpyHtoDAsync(device, host[0], 2 * BYTES, stream), 1); /* across two of them */
	CHECK_EQ(fake->sins(FAKE_UNREGISTERED), 0);

	memset(host[2], 3, BYTES);
	fake->hold(1);
	/* page-locked by nobody: taken at once, and noted */
	CU_OK(cu.cuMemcpyHtoDAsync(device, host[2], BYTES, stream));
	memset(host[2], 4, BYTES);
	fake->hold(0);
	CU_OK(cu.cuStreamSynchronize(stream));
	CHECK_EQ(*(uint8_t *)fake->at(device), 3);
	CHECK_EQ(fake->sins(FAKE_UNREGISTERED), 1);
	CU_OK(cu.cuMemHostUnregister(host[0]));
	CHECK_EQ(cu.cuMemHostUnregister(host[0]), 713);
	CU_OK(cu.cuMemHostUnregister(host[1]));
	CHECK_EQ(fake->sins(FAKE_BAD_HANDLE), 1);
	CU_OK(cu.cuMemFree(device));
	CU_OK(cu.cuStreamDestroy(stream));
	scene_close();
	CHECK_STR(fake->leaks(), "");
}

/* Not before the driver has noticed; but after 10 s, for a driver that does not notice. */
static void *let_go_soon(void *unused)
{
	for (unsigned i = 0; i < 10000 && fake->sins(FAKE_FREED_IN_USE) < 2; i++)
		usleep(1000);
	fake->hold(0);
	return unused;
}

TEST(what_is_freed_too_early_is_noticed)
{
	void *stream;
	uint64_t device;
	pthread_t thread;

	scene_open();
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuMemAlloc(&device, BYTES));
	CU_OK(cu.cuMemHostRegister(host, BYTES, 1));
	fake->hold(1);
	CU_OK(cu.cuMemcpyHtoDAsync(device, host, BYTES, stream));
	CU_OK(cu.cuMemHostUnregister(host));
	CHECK_EQ(fake->sins(FAKE_FREED_IN_USE), 1);
	CHECK_EQ(pthread_create(&thread, NULL, let_go_soon, NULL), 0);
	CU_OK(cu.cuMemFree(device));
	pthread_join(thread, NULL);
	CHECK_EQ(fake->sins(FAKE_FREED_IN_USE), 2);
	CHECK_STR(fake->leaks(), "1 streams, 0 events, 0 blocks, 0 page-locks, 0 modules, 1 retains");
	CU_OK(cu.cuStreamDestroy(stream));
	scene_close();
	CHECK_STR(fake->leaks(), "");
}

/* ---- contexts ---- */

TEST(another_context_is_noticed)
{
	void *other, *stream, *event, *popped, *found, *module, *function;
	uint64_t device;

	scene_open();
	other = fake->context(1);
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuEventCreate(&event, 2));
	CU_OK(cu.cuMemAlloc(&device, BYTES));
	CU_OK(cu.cuMemHostRegister(host, BYTES, 1));
	CU_OK(cu.cuModuleLoadData(&module, "kernels"));
	CU_OK(cu.cuCtxPushCurrent(other));
	CU_OK(cu.cuStreamGetCtx(stream, &found));
	CHECK(found == context);
	CHECK_EQ(cu.cuEventRecord(event, stream), 201);
	CHECK_EQ(cu.cuMemcpyHtoDAsync(device, host, BYTES, DEFAULT_STREAM), 201);
	CHECK_EQ(cu.cuEventRecord(event, DEFAULT_STREAM), 400);
	CHECK_EQ(cu.cuMemFree(device), 201);
	CHECK_EQ(cu.cuModuleGetFunction(&function, module, "nothing"), 201);
	CHECK_EQ(cu.cuModuleUnload(module), 201);
	CHECK_EQ(fake->sins(FAKE_WRONG_CONTEXT), 6);
	CU_OK(cu.cuCtxPopCurrent(&popped));
	CHECK(popped == other);
	CU_OK(cu.cuMemHostUnregister(host));
	CU_OK(cu.cuMemFree(device));
	CU_OK(cu.cuModuleUnload(module));
	CU_OK(cu.cuEventDestroy(event));
	CHECK_EQ(cu.cuEventRecord(event, stream), 400);
	CU_OK(cu.cuStreamDestroy(stream));
	CHECK_EQ(cu.cuStreamQuery(stream), 400);
	CHECK_EQ(fake->sins(FAKE_BAD_HANDLE), 2);
	scene_close();
	CHECK_EQ(cu.cuStreamCreate(&stream, 1), 201);
	CHECK_EQ(cu.cuStreamQuery(DEFAULT_STREAM), 201);
	fake->drop_context(other);
}

/* ---- failing ---- */

static void call_the_driver(void *rc)
{
	*(int *)rc = cu.cuCtxSynchronize();
}

TEST(calls_fail_when_they_are_told_to)
{
	void *stream, *event;
	int rc = 0;

	scene_open();
	fake->fail("cuEventCreate", 2, 2);
	CU_OK(cu.cuEventCreate(&event, 2));
	CU_OK(cu.cuEventDestroy(event));
	CHECK_EQ(cu.cuEventCreate(&event, 2), 2);
	CU_OK(cu.cuEventCreate(&event, 2));
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuLaunchHostFunc(stream, call_the_driver, &rc));
	CU_OK(cu.cuStreamSynchronize(stream));
	CHECK_EQ(rc, 800);
	CHECK_EQ(fake->sins(FAKE_CALLS_BACK), 1);

	fake->hold(1);
	atomic_store(&turn, 0);
	CU_OK(cu.cuLaunchHostFunc(stream, note, NULL));
	fake->break_down(700);
	fake->hold(0);
	CHECK_EQ(cu.cuStreamSynchronize(stream), 700);
	CHECK_EQ(cu.cuEventQuery(event), 700);
	CHECK_EQ(cu.cuCtxSynchronize(), 700);
	usleep(1000);
	fake->break_down(0);
	CHECK_EQ(atomic_load(&turn), 0); /* was never called */
	CU_OK(cu.cuEventDestroy(event));
	CU_OK(cu.cuStreamDestroy(stream));
	scene_close();
	CHECK_STR(fake->leaks(), "");
}

TEST(a_child_has_no_driver)
{
	pid_t pid;
	void *stream;

	scene_open();
	if (child_begin(&pid, 20))
		_exit(cu.cuStreamCreate(&stream, 1));
	CHECK_EQ(child_end(pid), 3 << 8);
	scene_close();
}

/* ---- kernels ---- */

static void twin_add(const struct fake_kernel_call *c)
{
	uint64_t memory = *(const uint64_t *)c->arguments[0];
	uint8_t *at = fake->at(memory), by = *(const uint8_t *)c->arguments[1];

	for (unsigned i = 0; i < c->grid[0] * c->block[0]; i++)
		at[i] = (uint8_t)(at[i] + by);
}

TEST(kernels_run_as_their_twins)
{
	static const size_t bytes[] = {8, 1};
	void *module, *function, *stream;
	uint64_t device;
	uint8_t by = 3;
	void *arguments[] = {&device, &by};

	scene_open();
	fake->kernel("add", twin_add, 2, bytes);
	CU_OK(cu.cuModuleLoadData(&module, "text"));
	CHECK_EQ(cu.cuModuleGetFunction(&function, module, "subtract"), 500);
	CU_OK(cu.cuModuleGetFunction(&function, module, "add"));
	CU_OK(cu.cuStreamCreate(&stream, 0));
	CU_OK(cu.cuMemAlloc(&device, BYTES));
	fake->hold(1);
	CU_OK(cu.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
	by = 100; /* arguments are taken at once */
	CHECK_EQ(cu.cuLaunchKernel(function, 4, 1, 1, 2048, 1, 1, 0, stream, arguments, NULL), 1);
	fake->hold(0);
	CU_OK(cu.cuStreamSynchronize(stream));
	CHECK_EQ(*(uint8_t *)fake->at(device + 1023), 0xa5 + 3);
	CHECK_EQ(*(uint8_t *)fake->at(device + 1024), 0xa5);
	CU_OK(cu.cuMemFree(device));
	CU_OK(cu.cuStreamDestroy(stream));
	CU_OK(cu.cuModuleUnload(module));
	scene_close();
	trainer_check_clean();
}

static const void *ran_image;

static void twin_notes_its_image(const struct fake_kernel_call *c)
{
	ran_image = c->image;
}

/* Two modules with one kernel: what is queued belongs to the one whose function was launched. */
TEST(a_function_belongs_to_one_module)
{
	static const char image[2][8] = {"first", "second"};
	static const size_t none[1];
	void *module[2], *function[2], *stream;

	scene_open();
	fake->kernel("note", twin_notes_its_image, 0, none);
	CU_OK(cu.cuStreamCreate(&stream, 0));
	for (int i = 0; i < 2; i++) {
		CU_OK(cu.cuModuleLoadData(&module[i], image[i]));
		CU_OK(cu.cuModuleGetFunction(&function[i], module[i], "note"));
	}
	for (int i = 0; i < 2; i++) {
		CU_OK(cu.cuLaunchKernel(function[i], 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
		CU_OK(cu.cuStreamSynchronize(stream));
		CHECK(ran_image == image[i]);
	}
	CU_OK(cu.cuModuleUnload(module[0]));
	CHECK_EQ(cu.cuLaunchKernel(function[0], 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), 400);
	CHECK_EQ(fake->sins(FAKE_BAD_HANDLE), 1);
	CU_OK(cu.cuLaunchKernel(function[1], 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	CU_OK(cu.cuStreamSynchronize(stream));
	CU_OK(cu.cuModuleUnload(module[1]));
	CU_OK(cu.cuStreamDestroy(stream));
	scene_close();
}

TEST_MAIN()
