/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transform_broken.c - transforming with one mistake each, and whether the fake driver or the
 * comparison notices it
 *
 * The mistakes stand between gpu/batch_transform.c and gpu/device.c.  Each runs in a child, whose
 * driver is its own; so does the sound one, which must be found without fault.  What a kernel
 * itself may get wrong is t_transform_kernel.c's affair.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=cuda_launch,--wrap=cuda_stream_wait
 * LDFLAGS: -Wl,--wrap=cuda_free
 * LDFLAGS: -Wl,--wrap=cuda_module_drop,--wrap=cuda_stream_finish,--wrap=cuda_enter
 * LDFLAGS: -Wl,--wrap=cuda_leave,--wrap=transform_position
 * TIMEOUT: 600
 */
#include "libshard/transform/transform.h"
#include "shard_gpu.h"
#include "shard_transform.h"
#include "tests/child.h"
#include "tests/cuda/transforming.h"

#define SEEDS 20
#if defined(__SANITIZE_THREAD__)
#define SOUND_SEEDS 6 /* it is slow, and sees mistakes of order at once */
#else
#define SOUND_SEEDS 20
#endif

static enum mistake {
	NO_MISTAKE,
	WRONG_STRIDE,
	WRONG_OUTPUT, /* rows of the second kernel of a launch go over those of the first */
	GRID_TAIL,    /* the last band is left out */
	GRID_ROWS,    /* the last row is left out */
	FEW_SHARED,   /* less shared memory than the call says */
	OTHER_BLOCK,  /* other threads than the kernel is compiled for */
	OTHER_STREAM, /* not the trainer's */
	NO_WAIT,      /* the trainer's stream does not wait for the batch */
	TABLE_NOT_WAITED_FOR,
	OTHER_POSITION,	 /* rank and world are left out of what is drawn */
	FREED_TOO_EARLY, /* close does not wait */
	LEAKED_TABLE,
	LEAKED_MODULE,
	WRONG_CONTEXT,
} mistake;

static struct transforming f;
static bool launching; /* calls come from gpu/batch_transform.c */

#define WRAPPED(type_, name_, types_) \
	type_ __real_##name_ types_;  \
	type_ __wrap_##name_ types_;
WRAPPED(int, cuda_launch,
	(const struct cuda_device *d, void *kernel, uint32_t across, uint32_t down, uint32_t threads,
	 uint32_t shared_bytes, const void *parameter, void *stream, struct shard_error *err))
WRAPPED(int, cuda_stream_wait, (const struct cuda_device *d, void *stream, void *event, struct shard_error *err))
WRAPPED(void, cuda_free, (const struct cuda_device *d, uint64_t memory))
WRAPPED(void, cuda_module_drop, (const struct cuda_device *d, void *module))
WRAPPED(int, cuda_stream_finish, (const struct cuda_device *d, void *stream, struct shard_error *err))
WRAPPED(int, cuda_enter, (const struct cuda_device *d, struct shard_error *err))
WRAPPED(int, cuda_leave, (const struct cuda_device *d, int rc, struct shard_error *err))
WRAPPED(uint64_t, transform_position, (const struct transform_plan *p, const struct shard_batch *batch, uint32_t i))

int __wrap_cuda_launch(const struct cuda_device *d, void *kernel, uint32_t across, uint32_t down, uint32_t threads,
		       uint32_t shared_bytes, const void *parameter, void *stream, struct shard_error *err)
{
	struct transform_call call;

	memcpy(&call, parameter, sizeof(call));
	call.record_step -= mistake == WRONG_STRIDE;
	if (mistake == WRONG_OUTPUT)
		call.to = f.output[f.launched % OUTPUTS];
	return __real_cuda_launch(d, kernel, across - (mistake == GRID_TAIL), down - (mistake == GRID_ROWS),
				  mistake == OTHER_BLOCK ? 128 : threads, mistake == FEW_SHARED ? 1024 : shared_bytes,
				  &call, mistake == OTHER_STREAM ? NULL : stream, err);
}

int __wrap_cuda_stream_wait(const struct cuda_device *d, void *stream, void *event, struct shard_error *err)
{
	return mistake == NO_WAIT && stream == f.t.stream ? SHARD_OK : __real_cuda_stream_wait(d, stream, event, err);
}

void __wrap_cuda_free(const struct cuda_device *d, uint64_t memory)
{
	if (mistake != LEAKED_TABLE || d == f.t.l->cuda)
		__real_cuda_free(d, memory);
}

void __wrap_cuda_module_drop(const struct cuda_device *d, void *module)
{
	if (mistake != LEAKED_MODULE)
		__real_cuda_module_drop(d, module);
}

int __wrap_cuda_stream_finish(const struct cuda_device *d, void *stream, struct shard_error *err)
{
	if (mistake == FREED_TOO_EARLY && !launching && d != f.t.l->cuda)
		return SHARD_OK;
	if (mistake != TABLE_NOT_WAITED_FOR || !launching)
		return __real_cuda_stream_finish(d, stream, err);
	fake->seed(f.launched, 0); /* the kernel runs as soon as it may */
	return SHARD_OK;
}

int __wrap_cuda_enter(const struct cuda_device *d, struct shard_error *err)
{
	return mistake == WRONG_CONTEXT && launching ? SHARD_OK : __real_cuda_enter(d, err);
}

int __wrap_cuda_leave(const struct cuda_device *d, int rc, struct shard_error *err)
{
	return mistake == WRONG_CONTEXT && launching ? rc : __real_cuda_leave(d, rc, err);
}

uint64_t __wrap_transform_position(const struct transform_plan *p, const struct shard_batch *batch, uint32_t i)
{
	return mistake == OTHER_POSITION && launching ? batch->position + i : __real_transform_position(p, batch, i);
}

/* ---- what notices it ---- */

enum noticed { HOST = 1, GPU = 2, SIN = 4, LEAK = 8 };

static void step(const struct shard_transform_row *rows, uint64_t row_count)
{
	uint64_t to = f.output[f.launched % OUTPUTS];
	struct shard_error err = {.message = ""};
	struct shard_batch there, here;
	void *other = NULL;

	if (mistake == NO_WAIT) /* copies later than kernels, or a slow machine would hide it */
		fake->seed(f.launched, 200000);
	if (shard_loader_next_device(f.t.l, f.t.stream, &there, &err) || shard_loader_next(f.host, &here, &err)) {
		complain(&wanted, "next: %s", err.message);
		return;
	}
	if (mistake == NO_WAIT)
		fake->seed(f.launched, 0);
	if (mistake == TABLE_NOT_WAITED_FOR) {
		fake->settle();
		fake->seed(f.launched, 200000);
	}
	if (mistake == WRONG_CONTEXT) { /* a program with two GPUs may have the other one current */
		other = fake->context(0);
		CU_OK(cu.cuCtxPushCurrent(other));
	}
	launching = true;
	if (shard_transform_launch(f.there, &there, rows, row_count, f.t.stream, (void *)(uintptr_t)to, &err))
		complain(&wanted, "launch: %s", err.message);
	launching = false;
	if (other) {
		CU_OK(cu.cuCtxPopCurrent(&other));
		fake->settle();
		fake->drop_context(other);
	}
	transforming_compare(&f, &here, rows, row_count, to);
	if (shard_loader_release_after(f.t.l, &there, f.t.stream, &err) || shard_loader_release(f.host, &here, &err))
		complain(&wanted, "release: %s", err.message);
}

/* In a child: a job, and what was noticed of it. */
static int run_job(uint64_t seed)
{
	static struct shard_transform_row rows[300];
	struct shard_transform_options o = {.size = sizeof(o),
					    .height = 35,
					    .width = 24,
					    .dtype = SHARD_F16,
					    .flip = 0.5,
					    .crop = seed % 2 ? SHARD_CROP_RESIZED : SHARD_CROP_RANDOM};
	struct shard_loader_options lo = {.batch_records = 9, .rank = 1, .world = 2};

	transforming_open(&f, lo, &o, 300, NON_BLOCKING, seed);
	for (uint32_t i = 0; i < 300; i++)
		rows[i] =
			(struct shard_transform_row){.from = i % 9, .x = i % 16, .y = i % 5, .width = 24, .height = 35};
	fake->seed(seed, 2000);
	for (int i = 0; i < 3; i++)
		step(NULL, 0);
	step(rows, 300);
	if (mistake == FREED_TOO_EARLY)
		fake->seed(seed, 200000);
	step(NULL, 0);
	shard_transform_close(f.there);
	fake->settle();
	shard_transform_close(f.here);
	close_loader(f.host);
	close_loader(f.t.l);
	for (unsigned i = 0; i < OUTPUTS; i++)
		CU_OK(cu.cuMemFree(f.output[i]));
	trainer_leave(&f.t);
	return (wanted.complaint[0] ? HOST : 0) | (gpu.complaint[0] ? GPU : 0) | (fake->leaks()[0] ? LEAK : 0) |
	       (fake->sins(FAKE_FREED_IN_USE) || fake->sins(FAKE_WRONG_CONTEXT) || fake->sins(FAKE_BAD_HANDLE) ? SIN
													       : 0);
}

static int notice(uint64_t seed)
{
	int status;
	pid_t pid;

	if (child_begin(&pid, 60)) {
		/* a sanitizer would tell of it at length */
		if (mistake != NO_MISTAKE && !freopen("/dev/null", "w", stderr))
			_exit(1);
		_exit(run_job(seed));
	}
	status = child_end(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : SIN;
}

struct mistake_row {
	const char *story;
	enum mistake mistake;
	int noticed; /* one of these */
};

static void check_mistakes(const struct mistake_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int seen = 0;

		STORY("%s", rows[i].story);
		mistake = rows[i].mistake;
		for (uint64_t seed = 0;
		     seed < (mistake == NO_MISTAKE ? SOUND_SEEDS : SEEDS) && !(seen & rows[i].noticed); seed++) {
			seen |= notice(seed);
			if (mistake == NO_MISTAKE)
				CHECK_EQ(seen, 0);
		}
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
		CHECK(!rows[i].noticed || seen); /* it may have spoken first */
#else
		CHECK(!rows[i].noticed || (seen & rows[i].noticed));
#endif
	}
}

TEST(each_mistake_is_noticed_and_sound_finishing_has_none)
{
	static const struct mistake_row rows[] = {{"none", NO_MISTAKE, 0},
						  {"stride", WRONG_STRIDE, GPU},
						  {"the second kernel's output", WRONG_OUTPUT, GPU},
						  {"tail of the grid", GRID_TAIL, GPU},
						  {"last row of the grid", GRID_ROWS, GPU},
						  {"shared memory", FEW_SHARED, GPU},
						  {"threads of a block", OTHER_BLOCK, GPU},
						  {"another stream", OTHER_STREAM, GPU},
						  {"a kernel does not wait for its batch", NO_WAIT, GPU},
						  {"nor for its table", TABLE_NOT_WAITED_FOR, GPU | SIN},
						  {"rank and world do not count", OTHER_POSITION, GPU},
						  {"closed too early", FREED_TOO_EARLY, SIN | GPU},
						  {"the table is left", LEAKED_TABLE, LEAK},
						  {"the module is left", LEAKED_MODULE, LEAK},
						  {"another context", WRONG_CONTEXT, SIN | HOST}};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	check_mistakes(rows, COUNT(rows));
}

TEST_MAIN()
