/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strange.h - a GPU whose checks find something else, and a library that does not look at them
 *
 * A program that includes this links with
 *     -Wl,--wrap=cuda_map_least_bytes,--wrap=cuda_event_ask,--wrap=batch_check_finish,--wrap=cuda_alloc
 */
#ifndef TESTS_CUDA_STRANGE_H
#define TESTS_CUDA_STRANGE_H

#include "tests/cuda/check_twin.h"
#include "tests/cuda/training.h"

static bool trusts, hurries; /* broken libraries: whatever was found is lent; the results are not waited for */
static bool dawdles;	     /* a GPU that has not finished, whenever it is asked */
static bool gives_no_answer; /* a driver that fails, whenever it is asked */

/* That checks make, each of which a test lets fail. */
static const char *const check_calls[] = {
	"cuMemcpyHtoDAsync",  "cuMemcpyBatchAsync",  "cuLaunchKernel",	  "cuMemcpyDtoHAsync", "cuEventQuery",
	"cuEventSynchronize", "cuStreamSynchronize", "cuStreamWaitEvent", "cuEventRecord",     "cuLaunchHostFunc"};

uint64_t __wrap_cuda_map_least_bytes(void);
int __real_cuda_alloc(const struct cuda_device *d, uint64_t bytes, uint64_t *memory, struct shard_error *e);
int __wrap_cuda_alloc(const struct cuda_device *d, uint64_t bytes, uint64_t *memory, struct shard_error *e);
int __real_cuda_event_ask(const struct cuda_device *d, void *event, bool *done, struct shard_error *e);
int __wrap_cuda_event_ask(const struct cuda_device *d, void *event, bool *done, struct shard_error *e);
int __real_batch_check_finish(struct batch_check *c, struct device_slot *to, struct shard_error *e);
int __wrap_batch_check_finish(struct batch_check *c, struct device_slot *to, struct shard_error *e);

uint64_t __wrap_cuda_map_least_bytes(void)
{
	return 1;
}

/* Memory of the GPU comes with results of another loader, whose first launch found all rows sound. */
int __wrap_cuda_alloc(const struct cuda_device *d, uint64_t bytes, uint64_t *memory, struct shard_error *e)
{
	static const struct check_result left = {.verdict = CHECK_SOUND, .number = 1};
	int rc = __real_cuda_alloc(d, bytes, memory, e);

	for (uint64_t at = 0; !rc && at + sizeof(left) <= bytes; at += sizeof(left))
		memcpy((uint8_t *)fake->at(*memory) + at, &left, sizeof(left));
	return rc;
}

int __wrap_cuda_event_ask(const struct cuda_device *d, void *event, bool *done, struct shard_error *e)
{
	int rc = __real_cuda_event_ask(d, event, done, e);

	*done = (*done || hurries) && !dawdles && !gives_no_answer;
	return gives_no_answer ? cuda_refused(d->api, 719, e, "cuEventQuery") : rc;
}

int __wrap_batch_check_finish(struct batch_check *c, struct device_slot *to, struct shard_error *e)
{
	return trusts ? SHARD_OK : __real_batch_check_finish(c, to, e);
}

/* ---- kernels that find something else ---- */

static atomic_uint launch_count, damaged_count; /* since be_strange(): launches, and units that were found */
static unsigned strange_first, strange_end;	/* launches, counted from 1, of which: */
static enum { FLIPS, LOST, SAYS_SOUND } strange;
static uint32_t flipped_row;
static atomic_uint held_launch; /* this launch and later ones wait until it is 0 again; 0: none waits */
static atomic_bool launch_waits;

static inline void count_damaged(const struct check_call *call)
{
	const struct check_result *r = fake->at(call->to);

	for (uint32_t i = 0; r && i < call->row_count; i++)
		atomic_fetch_add(&damaged_count, r[i].number == call->number && r[i].verdict == CHECK_DAMAGED);
}

/* A byte of a row that is due arrives damaged; or the kernel does not run; or does not compare. */
static inline void twin_strange(const struct fake_kernel_call *c)
{
	unsigned nth = atomic_fetch_add(&launch_count, 1) + 1;
	struct fake_kernel_call mine = *c;
	struct check_call call;
	const void *argument = &call;
	uint32_t row;
	uint8_t *from;

	memcpy(&call, c->arguments[0], sizeof(call));
	for (; atomic_load(&held_launch) && nth >= atomic_load(&held_launch); usleep(100))
		atomic_store(&launch_waits, true);
	if (nth < strange_first || nth >= strange_end) {
		twin_check(c);
		count_damaged(&call);
		return;
	}
	if (strange == LOST)
		return;
	from = fake->at(call.from);
	row = flipped_row < call.row_count ? flipped_row : 0; /* rows that are copied again are alone */
	if (strange == FLIPS && !(call.skip[row / 32] >> row % 32 & 1))
		from[row * call.step + call.bytes / 2] ^= 4;
	for (uint32_t i = 0; strange == SAYS_SOUND && i < call.row_count; i++)
		call.want[i] = XXH3_64bits(from + i * call.step, call.bytes);
	mine.arguments = &argument;
	twin_check(&mine);
	count_damaged(&call);
}

/* Launches from `first` to before `end` are strange. */
static inline void be_strange(int how, unsigned first, unsigned end, uint32_t row)
{
	strange = how;
	strange_first = first;
	strange_end = end;
	flipped_row = row;
	atomic_store(&launch_count, 0);
	atomic_store(&damaged_count, 0);
	atomic_store(&held_launch, 0);
	atomic_store(&launch_waits, false);
}

/* Behind training_open(). */
static inline void strange_open(void)
{
	static const size_t bytes[] = {sizeof(struct check_call)};

	be_strange(FLIPS, 0, 0, 0);
	fake->kernel("check_long", twin_strange, 1, bytes);
	fake->kernel("check_short", twin_strange, 1, bytes);
}

#endif
