/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_driver.c - libshard/gpu on the fake driver: whose context it uses, that it leaves no trace,
 * what it says when refused
 *
 * Drivers that are missing or old are tests/cuda/drivers.sh, for what a process finds it keeps.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 */
#include "libshard/gpu/gpu.h"
#include "shard_gpu.h"
#include "tests/child.h"
#include "tests/cuda/deaf.h"
#include "tests/cuda/trainer.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct shard_error err;
static uint8_t host[3][4096] __attribute__((aligned(4096)));

#define SOUND(call_)                                                                            \
	do {                                                                                    \
		int got_ = (call_);                                                             \
                                                                                                \
		if (got_)                                                                       \
			test_fail(__FILE__, __LINE__, "%s: %d, %s", #call_, got_, err.message); \
	} while (0)

/* ---- copies of many pieces: the first test, because its children must start the driver ---- */

#define PIECES	    5u
#define PIECE_BYTES 3000u
#define SIDES	    (CUDA_COPY_STREAMS - 1)
#define JOIN	    2u /* pieces of work: a record, and the wait for it */

/*
 * A map of a file, page-locked in two parts; pieces of both to the places of a block in another
 * order.
 */
struct scene {
	struct cuda_device *d;
	struct cuda_pieces p;
	void *stream, *event;
	uint64_t memory;
	uint8_t *map;
};

static void open_scene(struct scene *s)
{
	static const unsigned order[PIECES] = {3, 0, 4, 1, 2};

	*s = (struct scene){.map = trainer_map_file(4 * 4096, PROT_READ, MAP_SHARED)};
	SOUND(cuda_open(&s->d, SHARD_GPU_OF_STREAM, NULL, &err));
	SOUND(cuda_enter(s->d, &err));
	SOUND(cuda_stream_make(s->d, &s->stream, &err));
	SOUND(cuda_event_make(s->d, &s->event, &err));
	SOUND(cuda_alloc(s->d, PIECES * PIECE_BYTES, &s->memory, &err));
	SOUND(cuda_pin_map(s->d, s->map, 8192, &err));
	SOUND(cuda_pin_map(s->d, s->map + 8192, 8192, &err));
	CHECK(cuda_is_pinned(s->d, s->map + 4 * 4096 - 1));
	SOUND(cuda_pieces_open(s->d, &s->p, PIECES, &err));
	SOUND(cuda_pieces_open(s->d, &s->p, PIECES, &err)); /* nothing more */
	s->p.count = PIECES;
	for (unsigned i = 0; i < PIECES; i++) {
		s->p.to[i] = s->memory + order[i] * PIECE_BYTES;
		s->p.from[i] = s->map + (i < 2 ? i * 4000 : 8192 + (i - 2) * 2500);
		s->p.bytes[i] = PIECE_BYTES - i;
	}
}

static void close_scene(struct scene *s)
{
	cuda_pieces_close(s->d, &s->p, false);
	cuda_unpin(s->d, s->map);
	cuda_unpin(s->d, s->map + 8192);
	cuda_free(s->d, s->memory);
	cuda_event_drop(s->d, s->event);
	cuda_stream_drop(s->d, s->stream);
	SOUND(cuda_leave(s->d, 0, &err));
	cuda_close(s->d);
	CHECK(!munmap(s->map, 4 * 4096));
	trainer_check_clean();
}

/* With `calls`, the driver is one from before CUDA 12.8, and several streams share the copies. */
static int copy_pieces(bool calls, bool default_stream)
{
	const void *from[PIECES];
	uint64_t to[PIECES];
	struct scene s;

	fake = fake_find();
	if (calls)
		fake->hide("cuMemcpyBatchAsync");
	open_scene(&s);
	for (unsigned i = 0; i < SIDES; i++)
		CHECK_EQ(s.p.side[i] != NULL, calls);
	memcpy(from, s.p.from, sizeof(from));
	memcpy(to, s.p.to, sizeof(to));
	fake->hold(1);
	SOUND(cuda_copy_pieces(s.d, &s.p, default_stream ? NULL : s.stream, &err));
	CHECK_EQ(fake->pending(), PIECES + (calls ? 2 * SIDES * JOIN : 0));
	memset(s.p.to, 0, sizeof(to)); /* the arrays are not needed any more */
	s.p.count = 0;
	SOUND(cuda_copy_pieces(s.d, &s.p, s.stream, &err)); /* nothing */
	fake->hold(0);
	SOUND(cuda_stream_finish(s.d, default_stream ? NULL : s.stream, &err));
	CHECK_EQ(fake->pending(), 0);
	for (unsigned i = 0; i < PIECES; i++) {
		CHECK_MEM(fake->at(to[i]), from[i], PIECE_BYTES - i);
		CHECK(!i || *((uint8_t *)fake->at(to[i]) + PIECE_BYTES - i) == 0xa5);
	}
	CHECK_EQ(fake->count("cuMemcpyBatchAsync"), calls || default_stream ? 0 : 1);
	CHECK_EQ(fake->count("cuMemcpyHtoDAsync"), calls || default_stream ? PIECES : 0);
	close_scene(&s);
	return 0;
}

/* One call or many, the bytes are the same. */
TEST(pieces_of_a_file_are_copied_with_and_without_the_call_for_many)
{
	pid_t pid;

	for (unsigned i = 0; i < 4; i++) {
		STORY("%s, %s stream", i & 1 ? "CUDA 12.4" : "CUDA 12.8", i & 2 ? "the default" : "our own");
		if (child_begin(&pid, 20))
			_exit(copy_pieces(i & 1, i & 2));
		CHECK_EQ(child_end(pid), 0);
	}
}

/* ---- the same over several streams, which tests may give to any driver ---- */

static void open_streams(struct scene *s)
{
	trainer_open();
	open_scene(s);
	for (unsigned i = 0; i < SIDES; i++)
		SOUND(cuda_stream_make(s->d, &s->p.side[i], &err));
}

static atomic_bool gate_is_open;

static void wait_at_gate(void *unused)
{
	(void)unused;
	while (!atomic_load(&gate_is_open))
		usleep(200);
}

/*
 * Copy while work is held up: earlier work of the stream, or else the copies of a stream beside it.
 * Does anything that should wait for that come too early?  Nothing does, but that is looked at only
 * for a moment.
 */
static bool comes_early(struct scene *s, const struct cuda_device *d, bool earlier_work)
{
	unsigned all;
	bool early = false;

	atomic_store(&gate_is_open, false);
	SOUND(cuda_stream_call(d, earlier_work ? s->stream : s->p.side[SIDES - 1], wait_at_gate, NULL, &err));
	fake->hold(1);
	SOUND(cuda_copy_pieces(d, &s->p, s->stream, &err));
	all = fake->pending();
	SOUND(cuda_event_record(d, s->event, s->stream, &err));
	fake->hold(0);
	for (unsigned i = 0; i < (d == s->d ? 100 : 25000) && !early; i++) {
		usleep(200);
		if (earlier_work)
			early = fake->pending() <= all;
		else
			SOUND(cuda_event_ask(d, s->event, &early, &err));
	}
	atomic_store(&gate_is_open, true);
	fake->settle();
	return early;
}

TEST(copies_over_several_streams_keep_their_place)
{
	struct deaf_device deaf;
	struct scene s;

	open_streams(&s);
	for (int earlier_work = 0; earlier_work < 2; earlier_work++) {
		STORY("%s", earlier_work ? "earlier work" : "later work");
		CHECK(!comes_early(&s, s.d, earlier_work));
		CHECK(comes_early(&s, make_deaf(s.d, &deaf), earlier_work));
	}
	/* One copy has no use for them. */
	s.p.count = 1;
	fake->hold(1);
	SOUND(cuda_copy_pieces(s.d, &s.p, s.stream, &err));
	CHECK_EQ(fake->pending(), 1);
	fake->hold(0);
	fake->settle();
	close_scene(&s);
}

/* What only the call for many refuses works one by one.  What each call refuses is an error. */
TEST(many_copies_that_are_refused_are_made_one_by_one)
{
	static const unsigned also_fails[] = {0, 1, PIECES};

	for (size_t i = 0; i < COUNT(also_fails); i++) {
		struct scene s;
		int rc;

		STORY("and copy %u", also_fails[i]);
		trainer_open();
		open_scene(&s);
		fake->reset();
		fake->fail("cuMemcpyBatchAsync", 1, 700);
		fake->fail("cuMemcpyHtoDAsync", also_fails[i], 700);
		rc = cuda_copy_pieces(s.d, &s.p, s.stream, &err);
		fake->fail(NULL, 0, 0);
		SOUND(cuda_stream_finish(s.d, s.stream, &err));
		CHECK_EQ(rc, also_fails[i] ? SHARD_E_DEVICE : SHARD_OK);
		CHECK_EQ(s.p.one_by_one, !rc);
		CHECK_EQ(s.p.why.status, rc ? SHARD_OK : SHARD_E_DEVICE);
		CHECK_EQ(s.p.side[SIDES - 1] != NULL, !rc);
		if (rc) {
			CHECK_EQ(err.os_code, 700);
		} else {
			CHECK(strstr(s.p.why.message,
				     "(a batch of 5 copies to the device: CUDA_ERROR_ILLEGAL_ADDRESS"));
			for (unsigned k = 0; k < PIECES; k++)
				CHECK_MEM(fake->at(s.p.to[k]), s.p.from[k], PIECE_BYTES - k);
		}
		SOUND(cuda_copy_pieces(s.d, &s.p, s.stream, &err));
		SOUND(cuda_stream_finish(s.d, s.stream, &err));
		CHECK_EQ(fake->count("cuMemcpyBatchAsync"), rc ? 2 : 1);
		close_scene(&s);
	}
}

/* Whatever fails: when the stream is finished, no copy reads a piece or writes to the block any more. */
TEST(after_an_error_no_copy_is_left_behind)
{
	static const char *const calls[] = {"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyHtoDAsync"};

	for (size_t i = 0; i < COUNT(calls); i++) {
		unsigned nth = 0;
		struct scene s;
		int rc;

		open_streams(&s);
		do {
			STORY("%s, number %u", calls[i], ++nth);
			fake->seed(nth, 3000);
			fake->fail(calls[i], nth, 2);
			rc = cuda_copy_pieces(s.d, &s.p, s.stream, &err);
			fake->fail(NULL, 0, 0);
			if (rc)
				CHECK_EQ(err.os_code, 2);
			SOUND(cuda_stream_finish(s.d, s.stream, &err));
			CHECK_EQ(fake->pending(), 0);
		} while (rc);
		CHECK_EQ(nth, (i == 3 ? PIECES : 2 * SIDES) + 1);
		close_scene(&s);
	}
}

/* ---- whose context ---- */

static void *current(void)
{
	void *context;

	CU_OK(cu.cuCtxGetCurrent(&context));
	return context;
}

/* While the device is open and entered, that context is current; behind it, what was. */
static void check_open(void *stream, void *want)
{
	void *before = current();
	struct cuda_device *d;

	SOUND(cuda_open(&d, SHARD_GPU_OF_STREAM, stream, &err));
	CHECK(current() == before);
	SOUND(cuda_enter(d, &err));
	SOUND(cuda_check_stream(d, stream, &err));
	CHECK(!want || current() == want);
	CHECK(current());
	SOUND(cuda_leave(d, 0, &err));
	CHECK(current() == before);
	cuda_close(d);
}

TEST(the_context_is_the_streams_or_the_callers_or_the_primary_one)
{
	void *primary[2], *other, *stream[3], *popped;

	trainer_open();
	STORY("nothing is there");
	check_open(NULL, NULL);
	CHECK_STR(fake->leaks(), ""); /* not even the primary context */
	for (int i = 0; i < 2; i++)
		CU_OK(cu.cuDevicePrimaryCtxRetain(&primary[i], 70 + i));
	other = fake->context(1);
	for (int i = 0; i < 3; i++) {
		CU_OK(cu.cuCtxPushCurrent(i < 2 ? primary[i] : other));
		CU_OK(cu.cuStreamCreate(&stream[i], 0));
		CU_OK(cu.cuCtxPopCurrent(&popped));
	}
	STORY("a thread without a context");
	check_open(NULL, primary[0]);
	for (int i = 0; i < 3; i++)
		check_open(stream[i], i < 2 ? primary[i] : other);
	STORY("a thread with another one");
	CU_OK(cu.cuCtxPushCurrent(primary[1]));
	for (uintptr_t special = 0; special <= 2; special++)
		check_open((void *)special, primary[1]);
	check_open(stream[0], primary[0]);
	check_open(stream[2], other);
	CU_OK(cu.cuCtxPopCurrent(&popped));
	for (int i = 0; i < 3; i++) {
		CU_OK(cu.cuCtxPushCurrent(i < 2 ? primary[i] : other));
		CU_OK(cu.cuStreamDestroy(stream[i]));
		CU_OK(cu.cuCtxPopCurrent(&popped));
	}
	CHECK_EQ(cuda_open(&(struct cuda_device *){NULL}, SHARD_GPU_OF_STREAM, stream[0], &err), SHARD_E_DEVICE);
	CHECK(strstr(err.message, ": CUDA_ERROR_INVALID_HANDLE"));
	CHECK_EQ(err.os_code, 400);
	for (int i = 0; i < 2; i++)
		CU_OK(cu.cuDevicePrimaryCtxRelease(70 + i));
	fake->drop_context(other);
	trainer_check_clean();
}

TEST(a_primary_context_lives_as_long_as_it_is_open)
{
	struct cuda_device *d;
	void *primary, *popped;
	unsigned flags;
	int active;

	trainer_open();
	CU_OK(cu.cuDevicePrimaryCtxRetain(&primary, 71));
	CU_OK(cu.cuCtxPushCurrent(primary));
	SOUND(cuda_open(&d, SHARD_GPU_OF_STREAM, NULL, &err));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	CU_OK(cu.cuDevicePrimaryCtxRelease(71)); /* the trainer is done with it */
	SOUND(cuda_enter(d, &err));
	SOUND(cuda_leave(d, 0, &err));
	cuda_close(d);
	CU_OK(cu.cuDevicePrimaryCtxGetState(71, &flags, &active));
	CHECK_EQ(active, 0);
	trainer_check_clean();
}

TEST(streams_of_other_contexts_are_refused)
{
	void *context[2], *stream[2], *popped;
	struct cuda_device *d;

	trainer_open();
	for (int i = 0; i < 2; i++) {
		context[i] = fake->context(i);
		CU_OK(cu.cuCtxPushCurrent(context[i]));
		CU_OK(cu.cuStreamCreate(&stream[i], 0));
		CU_OK(cu.cuCtxPopCurrent(&popped));
	}
	SOUND(cuda_open(&d, 0, stream[0], &err));
	CU_OK(cu.cuCtxPushCurrent(context[1]));
	SOUND(cuda_enter(d, &err));
	CHECK_EQ(cuda_check_stream(d, stream[1], &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "belongs to another context than the batches of this loader; give a stream of their "
				  "GPU, or use one loader per GPU"));
	SOUND(cuda_check_stream(d, stream[0], &err));
	for (uintptr_t special = 0; special <= 2; special++)
		SOUND(cuda_check_stream(d, (void *)special, &err)); /* those of the loader's GPU */
	SOUND(cuda_leave(d, 0, &err));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	cuda_close(d);
	for (int i = 0; i < 2; i++) {
		CU_OK(cu.cuCtxPushCurrent(context[i]));
		CU_OK(cu.cuStreamDestroy(stream[i]));
		CU_OK(cu.cuCtxPopCurrent(&popped));
		fake->drop_context(context[i]);
	}
	trainer_check_clean();
}

TEST(a_child_is_refused)
{
	struct cuda_device *d, *mine;
	pid_t pid;

	trainer_open();
	SOUND(cuda_open(&d, SHARD_GPU_OF_STREAM, NULL, &err));
	if (child_begin(&pid, 20)) {
		bool told = cuda_open(&mine, SHARD_GPU_OF_STREAM, NULL, &err) == SHARD_E_ARGUMENT &&
			    strstr(err.message, "does not work in its children; fork before") &&
			    cuda_enter(d, &err) == SHARD_E_ARGUMENT &&
			    strstr(err.message, "its children cannot use it");

		cuda_forget(d);
		_exit(told ? 0 : 1);
	}
	CHECK_EQ(child_end(pid), 0);
	cuda_close(d);
	trainer_check_clean();
}

/* ---- what it does ---- */

static void set_flag(void *flag)
{
	*(int *)flag = 1;
}

TEST(copies_streams_and_events)
{
	void *copy, *user, *event;
	struct cuda_device *d;
	uint64_t memory;
	int called = 0;

	trainer_open();
	SOUND(cuda_open(&d, SHARD_GPU_OF_STREAM, NULL, &err));
	SOUND(cuda_enter(d, &err));
	SOUND(cuda_stream_make(d, &copy, &err));
	CU_OK(cu.cuStreamCreate(&user, 0));
	SOUND(cuda_event_make(d, &event, &err));
	SOUND(cuda_alloc(d, sizeof(host), &memory, &err));
	CHECK(!cuda_is_pinned(d, host));
	SOUND(cuda_pin(d, host, sizeof(host[0]) * 2, &err));
	CHECK(cuda_is_pinned(d, host));
	CHECK(cuda_is_pinned(d, host[2] - 1));
	CHECK(!cuda_is_pinned(d, host[2]));
	CHECK(!cuda_is_pinned(d, (void *)(uintptr_t)memory)); /* this asks about host memory only */
	memset(host, 7, sizeof(host));
	fake->hold(1);
	SOUND(cuda_copy_in(d, memory, host, 4096, copy, &err));
	SOUND(cuda_event_record(d, event, copy, &err));
	SOUND(cuda_stream_wait(d, user, event, &err));
	SOUND(cuda_stream_call(d, user, set_flag, &called, &err));
	SOUND(cuda_stream_check(d, user, &err)); /* not done is no failure */
	CHECK_EQ(fake->pending(), 4);
	fake->hold(0);
	SOUND(cuda_stream_finish(d, user, &err));
	SOUND(cuda_event_finish(d, event, &err));
	CHECK_EQ(called, 1);
	CHECK_EQ(*(uint8_t *)fake->at(memory + 4095), 7);
	CHECK_EQ(*(uint8_t *)fake->at(memory + 4096), 0xa5);
	/* Ours neither waits for the legacy default stream nor makes it wait. */
	fake->hold(1);
	SOUND(cuda_stream_call(d, NULL, set_flag, &called, &err));
	fake->hold(0);
	SOUND(cuda_stream_finish(d, copy, &err));
	cuda_unpin(d, host);
	cuda_free(d, memory);
	cuda_event_drop(d, event);
	cuda_stream_drop(d, copy);
	CU_OK(cu.cuStreamDestroy(user));
	fake->settle();
	SOUND(cuda_leave(d, 0, &err));
	cuda_close(d);
	trainer_check_clean();
}

/* ---- what it says ---- */

struct things {
	struct cuda_device *d;
	void *stream, *event;
	uint64_t memory;
	const uint8_t *map;
};

static int do_enter(struct things *t)
{
	int rc = cuda_enter(t->d, &err);

	return rc ? rc : cuda_leave(t->d, 0, &err);
}
static int do_leave(struct things *t)
{
	return cuda_leave(t->d, cuda_enter(t->d, &err), &err);
}
static int do_stream(struct things *t)
{
	void *made;
	int rc = cuda_stream_make(t->d, &made, &err);

	if (!rc)
		cuda_stream_drop(t->d, made);
	return rc;
}
static int do_urgent(struct things *t)
{
	int rc, least, greatest, priority;
	void *made;

	rc = cuda_stream_make_urgent(t->d, &made, &err);
	if (rc)
		return rc;
	CU_OK(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
	CU_OK(cu.cuStreamGetPriority(made, &priority));
	CHECK(greatest < least); /* lower numbers go first */
	CHECK_EQ(priority, greatest);
	cuda_stream_drop(t->d, made);
	return rc;
}
static int do_event(struct things *t)
{
	void *made;
	int rc = cuda_event_make(t->d, &made, &err);

	if (!rc)
		cuda_event_drop(t->d, made);
	return rc;
}
static int do_wait(struct things *t)
{
	return cuda_stream_wait(t->d, t->stream, t->event, &err);
}
static int do_call(struct things *t)
{
	static int flag;

	return cuda_stream_call(t->d, t->stream, set_flag, &flag, &err);
}
static int do_check(struct things *t)
{
	return cuda_stream_check(t->d, t->stream, &err);
}
static int do_transform(struct things *t)
{
	return cuda_stream_finish(t->d, t->stream, &err);
}
static int do_record(struct things *t)
{
	return cuda_event_record(t->d, t->event, t->stream, &err);
}
static int do_event_finish(struct things *t)
{
	return cuda_event_finish(t->d, t->event, &err);
}
static int do_alloc(struct things *t)
{
	uint64_t made;
	int rc = cuda_alloc(t->d, 3 << 19, &made, &err);

	if (!rc)
		cuda_free(t->d, made);
	return rc;
}
static int do_pin(struct things *t)
{
	int rc = cuda_pin(t->d, host[2], sizeof(host[2]), &err);

	if (!rc)
		cuda_unpin(t->d, host[2]);
	return rc;
}
static int do_pin_map(struct things *t)
{
	int rc = cuda_pin_map(t->d, t->map, sizeof(host[2]), &err);

	if (!rc)
		cuda_unpin(t->d, t->map);
	return rc;
}
static int do_copy(struct things *t)
{
	return cuda_copy_in(t->d, t->memory, host, sizeof(host[0]), t->stream, &err);
}

TEST(what_the_driver_refuses_is_told_with_its_name)
{
	static const struct {
		int (*act)(struct things *t);
		const char *call, *message;
	} rows[] = {{do_enter, "cuCtxPushCurrent", "cuCtxPushCurrent: "},
		    {do_leave, "cuCtxPopCurrent", "cuCtxPopCurrent: "},
		    {do_stream, "cuStreamCreate", "cuStreamCreate: "},
		    {do_urgent, "cuCtxGetStreamPriorityRange", "cuCtxGetStreamPriorityRange: "},
		    {do_urgent, "cuStreamCreateWithPriority", "cuStreamCreateWithPriority: "},
		    {do_event, "cuEventCreate", "cuEventCreate: "},
		    {do_wait, "cuStreamWaitEvent", "cuStreamWaitEvent, stream 0x"},
		    {do_call, "cuLaunchHostFunc", "cuLaunchHostFunc: "},
		    {do_check, "cuStreamQuery", "work queued earlier has failed: "},
		    {do_transform, "cuStreamSynchronize", "cuStreamSynchronize: "},
		    {do_record, "cuEventRecord", "cuEventRecord, stream 0x"},
		    {do_event_finish, "cuEventSynchronize", "cuEventSynchronize: "},
		    {do_alloc, "cuMemAlloc", "cuMemAlloc of 1.5 MiB: "},
		    {do_pin, "cuMemHostRegister", "cuMemHostRegister of 0.0 MiB: "},
		    {do_pin_map, "cuMemHostRegister", "cuMemHostRegister of 0.0 MiB of a file, read-only: "},
		    {do_copy, "cuMemcpyHtoDAsync", "copy of 0.0 MiB to the device: "}};
	static const char name[] = "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)";
	struct things t = {.map = trainer_map_file(sizeof(host[2]), PROT_READ, MAP_SHARED)};
	void *popped;

	trainer_open();
	SOUND(cuda_open(&t.d, SHARD_GPU_OF_STREAM, NULL, &err));
	SOUND(cuda_enter(t.d, &err));
	SOUND(cuda_stream_make(t.d, &t.stream, &err));
	SOUND(cuda_event_make(t.d, &t.event, &err));
	SOUND(cuda_alloc(t.d, sizeof(host), &t.memory, &err));
	SOUND(cuda_pin(t.d, host, sizeof(host[0]), &err));
	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("%s", rows[i].call);
		SOUND(rows[i].act(&t));
		fake->fail(rows[i].call, 1, 700);
		memset(&err, 0, sizeof(err));
		CHECK_EQ(rows[i].act(&t), SHARD_E_DEVICE);
		CHECK_EQ(err.os_code, 700);
		CHECK_EQ(strncmp(err.message, rows[i].message, strlen(rows[i].message)), 0);
		CHECK_STR(err.message + strlen(err.message) - strlen(name), name);
		if (rows[i].act == do_leave)
			CU_OK(cu.cuCtxPopCurrent(&popped)); /* which ours did not */
	}
	STORY("an error that was there before is the one that is told");
	CHECK_EQ(cuda_leave(t.d, SHARD_E_IO, NULL), SHARD_E_IO);
	SOUND(cuda_enter(t.d, &err));
	fake->settle();
	cuda_unpin(t.d, host);
	cuda_free(t.d, t.memory);
	cuda_event_drop(t.d, t.event);
	cuda_stream_drop(t.d, t.stream);
	SOUND(cuda_leave(t.d, 0, &err));
	cuda_close(t.d);
	trainer_check_clean();
}

/* Of many copies the driver says which one it did not take, and so do we. */
TEST(a_piece_that_is_refused_is_named)
{
	uint64_t memory, to[3];
	const void *from[] = {host[0], host[1], host[2]};
	size_t bytes[] = {4096, 4097, 4096};
	struct cuda_pieces p = {.to = to, .from = from, .bytes = bytes, .count = 3};
	struct cuda_device *d;
	void *stream;
	char want[160];

	trainer_open();
	SOUND(cuda_open(&d, SHARD_GPU_OF_STREAM, NULL, &err));
	SOUND(cuda_enter(d, &err));
	SOUND(cuda_stream_make(d, &stream, &err));
	SOUND(cuda_alloc(d, 3 * 8192, &memory, &err));
	SOUND(cuda_pin(d, host, 2 * sizeof(host[0]), &err));
	SOUND(cuda_pin(d, host[2], sizeof(host[2]), &err));
	for (unsigned i = 0; i < 3; i++)
		to[i] = memory + i * 8192;
	snprintf(want, sizeof(want), "copy 2 of 3 to the device, 4097 bytes from %p: CUDA_ERROR_INVALID_VALUE",
		 (void *)host[1]);
	for (int i = 0; i < 2; i++) {
		STORY("%s", i ? "a call for each" : "one call for all");
		CHECK_EQ(cuda_copy_pieces(d, &p, i ? NULL : stream, &err), SHARD_E_DEVICE);
		CHECK_STR(err.message, want);
		CHECK_EQ(err.os_code, 1);
	}
	fake->settle();
	cuda_unpin(d, host);
	cuda_unpin(d, host[2]);
	cuda_free(d, memory);
	cuda_stream_drop(d, stream);
	SOUND(cuda_leave(d, 0, &err));
	cuda_close(d);
	trainer_check_clean();
}

/* ---- threads ---- */

#define THREADS 4

static void *open_and_copy(void *own)
{
	struct shard_error e = {.message = ""};
	struct cuda_device *d;
	uint64_t memory = 0;
	void *stream = NULL, *wrong = NULL;

	if (cuda_open(&d, SHARD_GPU_OF_STREAM, NULL, &e))
		return own;
	for (int i = 0; i < 20 && !wrong; i++)
		if (cuda_enter(d, &e) || cuda_stream_make(d, &stream, &e) || cuda_alloc(d, 4096, &memory, &e) ||
		    cuda_copy_in(d, memory, own, 4096, stream, &e) || cuda_stream_finish(d, stream, &e) ||
		    *(const uint8_t *)fake->at(memory) != *(const uint8_t *)own ||
		    (cuda_free(d, memory), cuda_stream_drop(d, stream), 0) || cuda_leave(d, 0, &e))
			wrong = own;
	cuda_close(d);
	return wrong;
}

TEST(threads_share_the_driver)
{
	static uint8_t memory[THREADS][4096] __attribute__((aligned(4096)));
	pthread_t thread[THREADS];
	void *wrong;
	void *context, *popped;

	trainer_open();
	fake->seed(3, 50);
	CU_OK(cu.cuDevicePrimaryCtxRetain(&context, 70));
	CU_OK(cu.cuCtxPushCurrent(context));
	CU_OK(cu.cuMemHostRegister(memory, sizeof(memory), 1));
	for (int i = 0; i < THREADS; i++) {
		memset(memory[i], i + 1, 4096);
		CHECK_EQ(pthread_create(&thread[i], NULL, open_and_copy, memory[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(thread[i], &wrong), 0);
		CHECK(!wrong);
	}
	CU_OK(cu.cuMemHostUnregister(memory));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	CU_OK(cu.cuDevicePrimaryCtxRelease(70));
	trainer_check_clean();
}

TEST_MAIN()
