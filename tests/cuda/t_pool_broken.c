/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_pool_broken.c - pools with one mistake each, and what of the fake driver or the trainer notices
 * it
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=cuda_stream_wait,--wrap=cuda_gather_launch
 * LDFLAGS: -Wl,--wrap=cuda_gather_close,--wrap=order_share_band
 * LDFLAGS: -Wl,--wrap=cuda_stream_finish,--wrap=cuda_event_finish,--wrap=crew_give
 * LDFLAGS: -Wl,--wrap=order_share_row
 * TIMEOUT: 600
 */
/* Before headers with a function inside(): the kernel has a variable of that name. */
#include "tests/cuda/pooling.h"

#include "tests/cuda/mistakes.h"

#define POOL_BYTES 400000 /* hardly more than it must have: slabs are used again soon */

enum mistake {
	NO_MISTAKE,
	SLAB_NOT_AWAITED,      /* a batch is gathered from a slab that is still being copied */
	SLAB_TOO_EARLY,	       /* a slab is written while batches are gathered from it */
	BATCH_TOO_EARLY,       /* a batch is gathered into a slot that the trainer still reads */
	NO_WAIT_FOR_THE_BATCH, /* the trainer's stream does not wait until it is gathered */
	WRONG_ROW,
	ROWS_OF_THE_NEXT, /* rows of a share are off by one */
	WINDOW_TOO_SHORT, /* its last slabs are not awaited */
	WINDOW_TOO_LATE,  /* its first slabs are given back while it lasts */
	FREED_TOO_EARLY,
	LEAKED_MODULE,
};

static struct training t;
static bool closed;

#define WRAPPED(type_, name_, types_) \
	type_ __real_##name_ types_;  \
	type_ __wrap_##name_ types_;
WRAPPED(int, cuda_stream_wait, (const struct cuda_device *d, void *stream, void *event, struct shard_error *err))
WRAPPED(int, cuda_gather_launch,
	(const struct cuda_device *d, const struct cuda_gather *g, const struct gather_call *call, void *stream,
	 struct shard_error *err))
WRAPPED(void, cuda_gather_close, (const struct cuda_device *d, struct cuda_gather *g))
WRAPPED(void, order_share_band,
	(const struct order_share *s, const struct order *o, uint64_t position, uint64_t *first, uint64_t *end))
WRAPPED(uint64_t, order_share_row, (const struct order_share *s, uint64_t place))
WRAPPED(int, cuda_stream_finish, (const struct cuda_device *d, void *stream, struct shard_error *err))
WRAPPED(int, cuda_event_finish, (const struct cuda_device *d, void *event, struct shard_error *err))
WRAPPED(void, crew_give, (struct crew * c, uint32_t slot))

int __wrap_cuda_stream_wait(const struct cuda_device *d, void *stream, void *event, struct shard_error *err)
{
	const struct device_slots *batches = &t.l->device_slots;
	const struct slabs *slabs = &t.l->pool->slabs;
	enum mistake whose = NO_WAIT_FOR_THE_BATCH;

	if (stream == slabs->device_slots.stream)
		whose = SLAB_TOO_EARLY;
	else if (slabs->copy && stream == slabs->copy->back)
		whose = NO_MISTAKE;
	else if (stream == batches->stream) {
		whose = SLAB_NOT_AWAITED;
		for (uint32_t i = 0; i < batches->slot_count; i++)
			if (batches->slot[i].done == event)
				whose = BATCH_TOO_EARLY;
	}
	return mistake && mistake == (int)whose ? SHARD_OK : __real_cuda_stream_wait(d, stream, event, err);
}

int __wrap_cuda_gather_launch(const struct cuda_device *d, const struct cuda_gather *g, const struct gather_call *call,
			      void *stream, struct shard_error *err)
{
	struct gather_call wrong = *call;
	static uint64_t launches;
	int rc;

	wrong.row[0] = mistake == WRONG_ROW ? call->row[call->row_count - 1] : call->row[0];
	if (mistake == SLAB_TOO_EARLY) /* gathering later than copies, or a slow machine would hide it */
		fake->seed(launches++, 20000);
	rc = __real_cuda_gather_launch(d, g, &wrong, stream, err);
	if (mistake == SLAB_TOO_EARLY)
		fake->seed(launches++, 0);
	return rc;
}

void __wrap_cuda_gather_close(const struct cuda_device *d, struct cuda_gather *g)
{
	if (mistake != LEAKED_MODULE)
		__real_cuda_gather_close(d, g);
}

void __wrap_order_share_band(const struct order_share *s, const struct order *o, uint64_t position, uint64_t *first,
			     uint64_t *end)
{
	__real_order_share_band(s, o, position, first, end);
	if (mistake == WINDOW_TOO_SHORT)
		*end = (*first + *end) / 2;
	if (mistake == WINDOW_TOO_LATE)
		*first = (*first + *end) / 2;
}

uint64_t __wrap_order_share_row(const struct order_share *s, uint64_t place)
{
	uint64_t row = __real_order_share_row(s, place);

	return mistake == ROWS_OF_THE_NEXT ? row ^ 1 : row;
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
void __wrap_crew_give(struct crew *c, uint32_t slot)
{
	if (!closed)
		__real_crew_give(c, slot);
}

/* In a child: a job, and what was noticed of it. */
static int run_gathered(uint64_t seed)
{
	training_open(&t,
		      (struct shard_loader_options){.batch_records = 6,
						    .order.shuffle = SHARD_SHUFFLE_WINDOWS,
						    .order.run_records = 2,
						    .order.window_runs = 2,
						    .order.lane_count = 2,
						    .slot_count = 3,
						    .gpu.slot_count = 2,
						    .thread_count = 2,
						    .gpu.pool_bytes = POOL_BYTES},
		      (enum stream_kind)(seed % 2 ? NON_BLOCKING : BLOCKING), seed);
	gather_twin_open();
	fake->seed(seed, 1000);
	t.slow_us = 800;
	train(&t, LOOKS - 4, 1);
	if (mistake == FREED_TOO_EARLY) {
		fake->seed(seed, 200000);
		train(&t, 3, 1);
		closed = true;
	} else
		train_give_all(&t);
	return leave_and_tell(&t);
}

TEST(each_mistake_is_noticed_and_a_sound_pool_has_none)
{
	static const struct mistake_row rows[] = {
		{"none", NO_MISTAKE, 0, true},
		{"a batch is gathered before its slab is there", SLAB_NOT_AWAITED, GPU, false},
		{"a slab is written while batches are gathered from it", SLAB_TOO_EARLY, GPU, false},
		{"a batch is written while a kernel reads it", BATCH_TOO_EARLY, GPU, false},
		{"a kernel does not wait for its batch", NO_WAIT_FOR_THE_BATCH, GPU, false},
		{"a row of another record", WRONG_ROW, GPU, true},
		{"rows are off by one", ROWS_OF_THE_NEXT, GPU, true},
		{"half a window is not awaited", WINDOW_TOO_SHORT, SIN_OTHER, true},
		{"half a window is given back too early", WINDOW_TOO_LATE, SIN_OTHER, true},
		{"closed too early", FREED_TOO_EARLY, SIN_FREED, false},
		{"the kernel is left", LEAKED_MODULE, LEAK, true}};

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	check_mistakes(rows, COUNT(rows), run_gathered);
}

TEST_MAIN()
