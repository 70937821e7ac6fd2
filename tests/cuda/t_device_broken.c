/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_device_broken.c - loaders with one mistake each, and what of the fake driver or the trainer
 * notices it
 *
 * The mistakes stand between gpu/device_slots.c and gpu/device.c.  Each runs in a child, whose
 * driver is its own: what is left behind by one is not found by the next.  The sound loader runs
 * the same way and must be found without fault.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=cuda_stream_wait,--wrap=cuda_enter,--wrap=cuda_leave
 * LDFLAGS: -Wl,--wrap=cuda_pin,--wrap=pins_has
 * LDFLAGS: -Wl,--wrap=cuda_free,--wrap=cuda_unpin,--wrap=cuda_event_drop,--wrap=cuda_stream_drop
 * LDFLAGS: -Wl,--wrap=cuda_close
 * LDFLAGS: -Wl,--wrap=cuda_stream_finish,--wrap=cuda_event_finish,--wrap=crew_give
 * TIMEOUT: 600
 */
#include "shard_gpu.h"
#include "tests/cuda/mistakes.h"

enum mistake {
	NO_MISTAKE,
	DEVICE_SLOT_TOO_EARLY, /* the copy does not wait until the trainer is done with the slot */
	HOST_SLOT_TOO_EARLY,   /* the crew gets a slot back that is still being copied */
	NO_WAIT_FOR_THE_COPY,  /* the trainer's stream does not wait until the batch is there */
	WRONG_CONTEXT,
	UNREGISTERED,	  /* memory is taken for page-locked that is not */
	UNREGISTERED_YET, /* a copy does not wait until it is */
	FREED_TOO_EARLY,  /* close does not wait for what is under way */
	LEAKED_MEMORY,
	LEAKED_PIN,
	LEAKED_EVENT,
	LEAKED_STREAM,
	LEAKED_CONTEXT,
};

static struct training t;

/* ---- mistakes ---- */

#define WRAPPED(type_, name_, types_) \
	type_ __real_##name_ types_;  \
	type_ __wrap_##name_ types_;
/* clang-format off */
WRAPPED(int, cuda_stream_wait, (const struct cuda_device *d, void *stream, void *event, struct shard_error *err))
WRAPPED(int, cuda_enter, (const struct cuda_device *d, struct shard_error *err))
WRAPPED(int, cuda_leave, (const struct cuda_device *d, int rc, struct shard_error *err))
WRAPPED(int, cuda_pin, (const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *err))
WRAPPED(bool, pins_has, (struct pins *p, uint32_t slot))
WRAPPED(void, cuda_free, (const struct cuda_device *d, uint64_t memory))
WRAPPED(void, cuda_unpin, (const struct cuda_device *d, void *memory))
WRAPPED(void, cuda_event_drop, (const struct cuda_device *d, void *event))
WRAPPED(void, cuda_stream_drop, (const struct cuda_device *d, void *stream))
WRAPPED(void, cuda_close, (struct cuda_device *d))
WRAPPED(int, cuda_stream_finish, (const struct cuda_device *d, void *stream, struct shard_error *err))
WRAPPED(int, cuda_event_finish, (const struct cuda_device *d, void *event, struct shard_error *err))
/* clang-format on */

int __wrap_cuda_stream_wait(const struct cuda_device *d, void *stream, void *event, struct shard_error *err)
{
	enum mistake whose = NO_WAIT_FOR_THE_COPY;

	if (stream == t.l->device_slots.stream)
		whose = DEVICE_SLOT_TOO_EARLY;
	else if (stream == t.l->copy->back)
		whose = HOST_SLOT_TOO_EARLY;

	return mistake == (int)whose ? SHARD_OK : __real_cuda_stream_wait(d, stream, event, err);
}

int __wrap_cuda_enter(const struct cuda_device *d, struct shard_error *err)
{
	return mistake == WRONG_CONTEXT ? SHARD_OK : __real_cuda_enter(d, err);
}

int __wrap_cuda_leave(const struct cuda_device *d, int rc, struct shard_error *err)
{
	return mistake == WRONG_CONTEXT ? rc : __real_cuda_leave(d, rc, err);
}

int __wrap_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *err)
{
	for (int i = 0; mistake == UNREGISTERED_YET && i < 5000 && !fake->count("cuMemcpyHtoDAsync"); i++)
		usleep(1000);
	return mistake == UNREGISTERED ? SHARD_OK : __real_cuda_pin(d, memory, bytes, err);
}

bool __wrap_pins_has(struct pins *p, uint32_t slot)
{
	return mistake == UNREGISTERED_YET || __real_pins_has(p, slot);
}

void __wrap_cuda_free(const struct cuda_device *d, uint64_t memory)
{
	if (mistake != LEAKED_MEMORY)
		__real_cuda_free(d, memory);
}

void __wrap_cuda_unpin(const struct cuda_device *d, void *memory)
{
	if (mistake != LEAKED_PIN && mistake != UNREGISTERED)
		__real_cuda_unpin(d, memory);
}

void __wrap_cuda_event_drop(const struct cuda_device *d, void *event)
{
	if (mistake != LEAKED_EVENT)
		__real_cuda_event_drop(d, event);
}

void __wrap_cuda_stream_drop(const struct cuda_device *d, void *stream)
{
	if (mistake != LEAKED_STREAM)
		__real_cuda_stream_drop(d, stream);
}

void __wrap_cuda_close(struct cuda_device *d)
{
	if (mistake == LEAKED_CONTEXT)
		cuda_forget(d);
	else
		__real_cuda_close(d);
}

int __wrap_cuda_stream_finish(const struct cuda_device *d, void *stream, struct shard_error *err)
{
	return mistake == FREED_TOO_EARLY ? SHARD_OK : __real_cuda_stream_finish(d, stream, err);
}

int __wrap_cuda_event_finish(const struct cuda_device *d, void *event, struct shard_error *err)
{
	return mistake == FREED_TOO_EARLY ? SHARD_OK : __real_cuda_event_finish(d, event, err);
}

/* A slot that comes back when the loader is gone: nobody's, as its memory is freed. */
static bool closed;
WRAPPED(void, crew_give, (struct crew * c, uint32_t slot))
void __wrap_crew_give(struct crew *c, uint32_t slot)
{
	if (!closed)
		__real_crew_give(c, slot);
}

/* ---- what notices it ---- */

/* In a child: a job, and what was noticed of it. */
static int run(uint64_t seed)
{
	void *other = NULL;

	training_open(&t,
		      (struct shard_loader_options){
			      .batch_records = 9, .slot_count = 3, .gpu.slot_count = 2, .thread_count = 2},
		      (enum stream_kind)(seed % 2 ? NON_BLOCKING : BLOCKING), seed);
	/*
	 * What comes too early shows where copies are slow, what stays too short where looks are.
	 */
	fake->seed(seed, mistake == NO_WAIT_FOR_THE_COPY ? 20000 : 1000);
	t.slow_us = mistake == NO_WAIT_FOR_THE_COPY ? 0 : 800;
	if (mistake == WRONG_CONTEXT) { /* a program with two GPUs may have the other one current */
		other = fake->context(0);
		CU_OK(cu.cuCtxPushCurrent(other));
		shard_loader_next_device(t.l, t.stream, &t.lent.batch[0], NULL);
	} else
		train(&t, 24, 1);
	if (mistake == FREED_TOO_EARLY) {
		fake->seed(seed, 200000);
		train(&t, 3, 1);
		closed = true;
	} else
		train_give_all(&t);
	close_loader(t.l);
	fake->settle();
	if (other) {
		CU_OK(cu.cuCtxPopCurrent(&other));
		fake->drop_context(other);
	}
	trainer_leave(&t);
	return noticed_now();
}

TEST(each_mistake_is_noticed_and_a_sound_loader_has_none)
{
	static const struct mistake_row rows[] = {
		{"none", NO_MISTAKE, 0, true},
		{"a device slot is written while a kernel reads it", DEVICE_SLOT_TOO_EARLY, GPU, false},
		{"a host slot is filled while it is copied", HOST_SLOT_TOO_EARLY, GPU, false},
		{"a kernel does not wait for its batch", NO_WAIT_FOR_THE_COPY, GPU, false},
		{"another context", WRONG_CONTEXT, SIN_CONTEXT, true},
		{"nothing is page-locked", UNREGISTERED, SIN_UNREGISTERED, true},
		{"copied before it is page-locked", UNREGISTERED_YET, SIN_UNREGISTERED, true},
		{"closed too early", FREED_TOO_EARLY, SIN_FREED, false},
		{"device memory is left", LEAKED_MEMORY, LEAK, true},
		{"page-locks are left", LEAKED_PIN, LEAK, true},
		{"events are left", LEAKED_EVENT, LEAK, true},
		{"streams are left", LEAKED_STREAM, LEAK, true},
		{"the primary context is left", LEAKED_CONTEXT, LEAK, true}};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	check_mistakes(rows, COUNT(rows), run);
}

TEST_MAIN()
