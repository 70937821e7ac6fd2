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
#include <linux/magic.h>
#include <stdatomic.h>
#include <sys/vfs.h>

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

/* Is $TMPDIR in memory?  Then its files are no files on a disk. */
static bool tmpdir_is_in_memory(void)
{
	struct statfs fs;

	return !statfs(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", &fs) && fs.f_type == TMPFS_MAGIC;
}

TEST(which_maps_are_page_locked)
{
	enum { READ = PROT_READ, WRITE = PROT_READ | PROT_WRITE, SHARED = MAP_SHARED, PRIVATE = MAP_PRIVATE };
	static const struct {
		const char *story;
		bool of_file;
		int protection, flags;
		int plain, read_only; /* what cuMemHostRegister says, without CU_MEMHOSTREGISTER_READ_ONLY and with */
		int copies;
	} rows[] = {{"anonymous", false, WRITE, PRIVATE, 0, 0, 0},
		    {"anonymous, read-only", false, READ, PRIVATE, 1, 0, 0},
		    {"anonymous, shared", false, WRITE, SHARED, 0, 0, 0},
		    {"nobody's to touch", false, PROT_NONE, PRIVATE, 1, 1, 0},
		    {"a file, read-only", true, READ, SHARED, 1, 0, 0},
		    {"a file", true, WRITE, SHARED, 1, 0, 0},
		    {"a file, private and read-only", true, READ, PRIVATE, 1, 0, 1},
		    {"a file, private", true, WRITE, PRIVATE, 0, 0, 2}};

	scene_open();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool in_memory = rows[i].of_file && rows[i].flags == SHARED && rows[i].protection == WRITE &&
				 tmpdir_is_in_memory();
		uint8_t *map = rows[i].of_file ? trainer_map_file(2 * BYTES, rows[i].protection, rows[i].flags)
					       : mmap(NULL, 2 * BYTES, rows[i].protection,
						      rows[i].flags | MAP_ANONYMOUS, -1, 0);

		STORY("%s", rows[i].story);
		CHECK(map != MAP_FAILED);
		for (unsigned flags = 1; flags <= 9; flags += 8) {
			int want = flags & 8 ? rows[i].read_only : in_memory ? 0 : rows[i].plain;

			CHECK_EQ(cu.cuMemHostRegister(map, 2 * BYTES, flags), want);
			if (!want)
				CU_OK(cu.cuMemHostUnregister(map));
		}
		CHECK_EQ(fake->sins(FAKE_COPIED_FILE), rows[i].copies);
		CHECK_EQ(fake->sins(FAKE_UNMAPPED), 0);
		CHECK(!munmap(map, 2 * BYTES));
		fake->reset();
	}
	STORY("what is not there");
	CHECK_EQ(cu.cuMemHostRegister((void *)4096, BYTES, 1), 1);
	scene_close();
	trainer_check_clean();
}

TEST(page_locked_maps_stay_and_are_not_written)
{
	uint8_t *map, *other;
	void *stream;
	uint64_t device;

	scene_open();
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuMemAlloc(&device, BYTES));
	map = trainer_map_file(3 * BYTES, PROT_READ, MAP_SHARED);
	CHECK(!munmap(map + 2 * BYTES, BYTES));
	CHECK_EQ(cu.cuMemHostRegister(map, 3 * BYTES, 9), 1); /* some of it is not there */

	CU_OK(cu.cuMemHostRegister(map, 2 * BYTES, 9));
	CHECK_EQ(cu.cuMemcpyDtoHAsync(map, device, BYTES, stream), 1);
	CU_OK(cu.cuMemcpyHtoDAsync(device, map + BYTES, BYTES, stream));
	CU_OK(cu.cuStreamSynchronize(stream));
	CHECK_MEM(fake->at(device), map + BYTES, BYTES);
	CU_OK(cu.cuMemHostUnregister(map));
	trainer_check_sins();

	STORY("unmapped while it is page-locked");
	CU_OK(cu.cuMemHostRegister(map, 2 * BYTES, 9));
	CHECK(!munmap(map, BYTES));
	CU_OK(cu.cuMemHostUnregister(map));
	CHECK_EQ(fake->sins(FAKE_UNMAPPED), 1);

	STORY("another file is there instead");
	map = trainer_map_file(BYTES, PROT_READ, MAP_SHARED);
	other = trainer_map_file(BYTES, PROT_READ, MAP_SHARED);
	CU_OK(cu.cuMemHostRegister(map, BYTES, 9));
	CHECK(mremap(other, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, map) == map);
	CU_OK(cu.cuMemHostUnregister(map));
	CHECK_EQ(fake->sins(FAKE_UNMAPPED), 2);
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

/* ---- batches of copies ---- */

#define PIECES 4u

static void *copy_stream;
static uint64_t pieces_at; /* PIECES * BYTES of the device */

/* A batch that is fine; a test spoils it. */
struct batch {
	uint64_t to[PIECES], from[PIECES];
	size_t bytes[PIECES], count, firsts[2], attribute_count, failed;
	int attributes[2][6];
	void *stream;
};

static void batch_open(struct batch *b)
{
	scene_open();
	CU_OK(cu.cuStreamCreate(&copy_stream, 1));
	CU_OK(cu.cuMemAlloc(&pieces_at, PIECES * BYTES));
	CU_OK(cu.cuMemHostRegister(host, 2 * BYTES, 1));
	CU_OK(cu.cuMemHostRegister(host[2], BYTES, 1)); /* and host[3] is not page-locked */
	for (unsigned i = 0; i < PIECES; i++)
		memset(host[i], (int)i + 1, BYTES);
	*b = (struct batch){.count = PIECES,
			    .attribute_count = 2,
			    .firsts = {0, 2},
			    .attributes = {{1}, {1}},
			    .stream = copy_stream};
	for (unsigned i = 0; i < PIECES; i++) {
		b->to[i] = pieces_at + i * BYTES;
		b->from[i] = (uintptr_t)host[i % 3];
		b->bytes[i] = BYTES;
	}
}

static void batch_close(void)
{
	fake->settle();
	CU_OK(cu.cuMemHostUnregister(host));
	CU_OK(cu.cuMemHostUnregister(host[2]));
	CU_OK(cu.cuMemFree(pieces_at));
	CU_OK(cu.cuStreamDestroy(copy_stream));
	scene_close();
	CHECK_STR(fake->leaks(), "");
}

static int batch_queue(struct batch *b)
{
	b->failed = 77;
	return cu.cuMemcpyBatchAsync(b->to, b->from, b->bytes, b->count, b->attributes, b->firsts, b->attribute_count,
				     &b->failed, b->stream);
}

/* It is refused because of this statement, which spoils it, and nothing counts as a sin. */
#define REFUSED(story_, failed_, spoil_)             \
	do {                                         \
		STORY("%s", story_);                 \
		b = fine;                            \
		spoil_;                              \
		CHECK_EQ(batch_queue(&b), 1);        \
		CHECK_EQ(b.failed, (size_t)failed_); \
		fake->settle();                      \
		trainer_check_sins();                \
	} while (0)

TEST(batches_that_are_refused)
{
	struct batch b, fine;

	batch_open(&fine);
	b = fine;
	CU_OK(batch_queue(&b));
	CHECK_EQ(b.failed, SIZE_MAX);
	REFUSED("no copy", -1, b.count = 0);
	REFUSED("no attributes", -1, b.attribute_count = 0);
	REFUSED("more attributes than copies", -1, b.count = 1);
	REFUSED("a first index that is not 0", -1, b.firsts[0] = 1);
	REFUSED("indices that do not rise", -1, b.firsts[1] = 0);
	REFUSED("an index that is not of a copy", -1, b.firsts[1] = PIECES);
	REFUSED("an order of access that is unknown", -1, b.attributes[1][0] = 0);
	REFUSED("a flag that is unknown", -1, b.attributes[1][5] = 2);
	REFUSED("the legacy default stream", -1, b.stream = NULL);
	REFUSED("the same by its handle", -1, b.stream = (void *)1);
	REFUSED("to memory that is not the device's", 2, b.to[2] = (uintptr_t)host[0]);
	REFUSED("across the end of the device's memory", 3, b.to[3]++);
	REFUSED("from two page-locks", 1, b.from[1] = (uintptr_t)host[1] + 1);
	REFUSED("from a page-lock and beyond its end", 2, b.from[2]++);
	REFUSED("an empty copy", 0, b.bytes[0] = 0);
	STORY("%s", "");
	b = fine;
	b.stream = (void *)2; /* that of the thread is a stream like others */
	CU_OK(batch_queue(&b));
	batch_close();
}

TEST(a_batch_is_not_captured)
{
	struct batch b;
	void *graph;

	batch_open(&b);
	CU_OK(cu.cuStreamBeginCapture(copy_stream, 1));
	CHECK_EQ(batch_queue(&b), 900);
	CHECK_EQ(b.failed, SIZE_MAX);
	CU_OK(cu.cuStreamEndCapture(copy_stream, &graph)); /* which lacks the copies, and does not say so */
	CU_OK(cu.cuGraphDestroy(graph));
	CHECK_EQ(fake->pending(), 0);
	batch_close();
}

/* Memory that is not page-locked: the order of access says when it is read at the latest. */
TEST(a_batch_from_memory_that_is_not_page_locked)
{
	struct batch b;

	batch_open(&b);
	b.from[1] = b.from[3] = (uintptr_t)host[3];
	b.attributes[1][0] = 2; /* for copies 2 and 3: while the driver is called */
	fake->hold(1);
	CU_OK(batch_queue(&b));
	CHECK_EQ(fake->sins(FAKE_UNREGISTERED), 2);
	memset(host[3], 9, BYTES);
	fake->hold(0);
	CU_OK(cu.cuStreamSynchronize(copy_stream));
	CHECK_EQ(*(uint8_t *)fake->at(b.to[1]), 9);
	CHECK_EQ(*(uint8_t *)fake->at(b.to[3]), 4);
	fake->reset();
	batch_close();
}

/* What stands around a batch on its stream keeps its place, and the copies of it have no order. */
TEST(a_batch_has_its_place_on_the_stream_and_no_order_within)
{
	unsigned won[PIECES + 1] = {0};
	struct batch b;

	batch_open(&b);
	b.count = 3;
	for (unsigned i = 0; i < PIECES; i++)
		b.to[i] = pieces_at; /* as nobody may do it: the last one wins */
	for (uint64_t seed = 0; seed < TRIES; seed++) {
		uint8_t *at = fake->at(pieces_at);

		fake->seed(seed, 300);
		CU_OK(cu.cuMemcpyHtoDAsync(pieces_at, host[0], BYTES, copy_stream));
		CU_OK(batch_queue(&b));
		CU_OK(cu.cuMemcpyDtoHAsync(host[3], pieces_at, BYTES, copy_stream));
		CU_OK(cu.cuMemcpyHtoDAsync(pieces_at, host[1], 1, copy_stream));
		CU_OK(cu.cuStreamSynchronize(copy_stream));
		CHECK(host[3][0] == host[3][BYTES - 1] && host[3][0] >= 1 && host[3][0] <= 3);
		CHECK_EQ(at[0], 2);
		CHECK_EQ(at[1], host[3][0]);
		won[host[3][0]]++;
	}
	CHECK(won[1] && won[2] && won[3]);
	fake->reset();
	batch_close();
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
