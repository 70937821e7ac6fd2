/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.cu - batches to a GPU: against its copy engine, in CPU seconds, and how long a training loop
 * waits for them
 *
 *   make bench-gpu        needs nvcc and a GPU; the rows are those of bench/README.md
 *
 * The records lie in the page cache.  An epoch goes by shard_loader_next_device() as a trainer
 * calls it, its work queued on a stream and the batch released behind it; it begins with a seek, so
 * that nothing was prepared for it but the ring, whose pages an epoch before it has locked.  The
 * ceiling is what the copy engine does when it copies blocks as large as a batch, one behind the
 * other, out of memory that is page-locked, and nothing else.  Kernels stand for a trainer: one
 * that waits a given time (gpu_job.cu), and one that keeps all multiprocessors multiplying.
 */
#include <stdio.h>

#include "bench/gpu_job.h"
#include "shard_gpu.h"

#define FIRST_GIB 1
#ifndef MULTIPLY_ROUNDS
#define MULTIPLY_ROUNDS 20000
#endif
#ifndef MULTIPLY_LAUNCHES
#define MULTIPLY_LAUNCHES 500 /* as long as some epochs; a driver takes 1024 before it waits */
#endif

/* Multiplications in registers; `out` gets one number a thread, so that they are not left out. */
__global__ void multiply(float *out, int rounds)
{
	float a = threadIdx.x * 1e-3f, b = blockIdx.x * 1e-4f;

	for (int i = 0; i < rounds; i++) {
		a = a * 0.999f + b;
		b = b * 0.998f + a;
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = a + b;
}

/* ---- the copy engine by itself ---- */

struct copies {
	struct job *j;
	uint64_t bytes; /* of one */
};

static double run_copies(void *context)
{
	const struct copies *c = (const struct copies *)context;
	struct job *j = c->j;
	uint64_t done = 0;
	double begin = bench_seconds();

	for (uint64_t at = 0; done < j->epoch_bytes; done += c->bytes, at += c->bytes) {
		at = at + c->bytes > j->batch_bytes ? 0 : at;
		CUDA(cudaMemcpyAsync(j->device + at, j->locked + at, c->bytes, cudaMemcpyHostToDevice, j->stream));
	}
	CUDA(cudaStreamSynchronize(j->stream));
	return (double)done / (bench_seconds() - begin) / 1e9;
}

/* What the link gives, by the size of a copy: the reason why a batch is one. */
static void copy_rows(struct bench *b, struct job *j)
{
	const uint64_t bytes[] = {64 << 10, DATA_IMAGE_BYTES, 1 << 20, 16 << 20, j->batch_bytes};

	for (uint64_t n : bytes) {
		struct copies c = {j, n};
		struct bench_row row = {};
		char name[64];

		snprintf(name, sizeof(name), "gpu/copy-engine/%llu", (unsigned long long)n);
		row.name = name;
		row.unit = "GB/s";
		row.context = &c;
		row.side[0] = {"cudaMemcpyAsync, page-locked", run_copies, NULL, NULL, 0};
		bench_run(b, &row);
	}
}

/* ---- many copies without a call for many ---- */

#define SIDES 7

/* Copies of a batch that streams share: those behind a fork of the first one, which is joined again. */
struct shared_copies {
	struct job *j;
	uint64_t bytes; /* of one */
	int streams;
	cudaStream_t side[SIDES];
	cudaEvent_t event;
};

static void wait_for(cudaEvent_t event, cudaStream_t stream, cudaStream_t behind)
{
	CUDA(cudaEventRecord(event, behind));
	CUDA(cudaStreamWaitEvent(stream, event, 0));
}

static double run_shared(void *context)
{
	struct shared_copies *c = (struct shared_copies *)context;
	struct job *j = c->j;
	uint64_t count = j->batch_bytes / c->bytes, done = 0;
	double begin = bench_seconds();

	for (; done < j->epoch_bytes; done += count * c->bytes) {
		for (int i = 0; i < c->streams - 1; i++)
			wait_for(c->event, c->side[i], j->stream);
		for (uint64_t i = 0; i < count; i++) { /* from anywhere: 7919 is a prime */
			uint64_t from = i * 7919 % count, turn = i % c->streams;

			CUDA(cudaMemcpyAsync(j->device + i * c->bytes, j->locked + from * c->bytes, c->bytes,
					     cudaMemcpyHostToDevice, turn ? c->side[turn - 1] : j->stream));
		}
		for (int i = 0; i < c->streams - 1; i++)
			wait_for(c->event, j->stream, c->side[i]);
	}
	CUDA(cudaStreamSynchronize(j->stream));
	return (double)done / (bench_seconds() - begin) / 1e9;
}

/* How many streams a loader should use where the driver has no call for many: CUDA_COPY_STREAMS. */
static void stream_count_rows(struct bench *b, struct job *j)
{
	const uint64_t sizes[] = {64 << 10, DATA_IMAGE_BYTES};
	struct shared_copies c = {};

	c.j = j;
	for (cudaStream_t &side : c.side)
		CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&c.event));
	for (uint64_t bytes : sizes)
		for (int streams = 1; streams <= SIDES + 1; streams *= 2) {
			struct bench_row row;
			char name[64];

			snprintf(name, sizeof(name), "gpu/streams/%llu/%d", (unsigned long long)bytes, streams);
			c.bytes = bytes;
			c.streams = streams;
			row = job_row(j, name, &c);
			row.side[0] = {"cudaMemcpyAsync on so many streams", run_shared, NULL, NULL, 0};
			bench_run(b, &row);
		}
	CUDA(cudaEventDestroy(c.event));
	for (cudaStream_t side : c.side)
		CUDA(cudaStreamDestroy(side));
}

/* ---- the stream of batches, and the copy engine ---- */

static double run_pageable(void *context)
{
	struct job *j = *(struct job **)context;

	return job_copy_batches(j, j->plain, cudaMemcpyHostToDevice);
}

/* With this many threads; 0: as many as the loader chooses. */
static void stream_row(struct bench *b, struct job *j, unsigned threads)
{
	struct bench_row row;
	char name[64] = "gpu/stream/150528";

	if (threads)
		snprintf(name, sizeof(name), "gpu/stream/150528/%u", threads);
	row = job_row(j, name, &j);
	row.side[0] = {"shard_loader_next_device", job_run_stream, job_open_stream, job_close_stream, 0};
	row.side[1] = {"copy engine, page-locked", job_run_link, NULL, NULL, 0};
	row.side[2] = {"cudaMemcpyAsync, pageable", run_pageable, NULL, NULL, 0};
	j->trainer.options.thread_count = threads;
	if (bench_run(b, &row) > 0) {
		job_note(j);
		if (!threads)
			job_tell_waits(b, name, j);
	}
	j->trainer.options.thread_count = 0;
}

/* ---- a loop that trains: how long the GPU has nothing to do ---- */

static double run_idle(void *context)
{
	struct job *j = (struct job *)context;
	double idle = 0, alone, more;
	uint64_t steps;

	job_queue_step(j, 0);
	alone = job_elapsed_seconds(j->begin[0], j->end[0]);
	steps = job_queue_epoch(j);
	CUDA(cudaStreamSynchronize(j->stream));
	for (uint64_t i = 0; i < steps; i++) {
		if (i)
			idle += job_elapsed_seconds(j->end[i - 1], j->begin[i]);
		more = job_elapsed_seconds(j->begin[i], j->end[i]) - alone;
		if (j->is_full && more > 0) /* its blocks waited for room */
			idle += more;
	}
	return 100 * idle / job_elapsed_seconds(j->begin[0], j->end[steps - 1]);
}

/*
 * Steps of `times` what a batch takes to be copied.  A kernel that fills all multiprocessors keeps
 * the check of a batch from them; what the check then takes from a step counts as idle, too.
 */
static void idle_row(struct bench *b, struct job *j, double copy_seconds, double times, bool is_full)
{
	struct bench_row row = {};
	char name[64];

	snprintf(name, sizeof(name), "gpu/idle/%.3g%s", times, is_full ? "/full" : "");
	row.name = name;
	row.unit = "%";
	row.less_is_better = true;
	row.context = j;
	row.side[0] = {"GPU idle between steps", run_idle, job_open_warm, job_close_loader, 0};
	j->ticks = (long long)(times * copy_seconds * j->ticks_per_second);
	j->is_full = is_full;
	if (bench_wants(b, name)) {
		bench_run(b, &row);
		job_note(j);
		bench_note("steps of %.2f ms; a batch of %.1f MB is copied in %.2f ms", 1e3 * times * copy_seconds,
			   (double)j->batch_bytes / 1e6, 1e3 * copy_seconds);
	}
	j->ticks = 0;
	j->is_full = false;
}

static void idle_rows(struct bench *b, struct job *j)
{
	static const double times[] = {0.5, 1.25, 2, 4};
	double copy_seconds = (double)j->batch_bytes / 1e9 / job_copy_batches(j, j->locked, cudaMemcpyHostToDevice);

	for (double t : times)
		idle_row(b, j, copy_seconds, t, false);
	idle_row(b, j, copy_seconds, 2, true);
}

/* ---- what the copies cost kernels that compute ---- */

struct beside {
	struct job *j;
	double bytes, seconds; /* of batches that came meanwhile, in all runs */
};

static void take_batch(struct job *j, uint64_t *bytes)
{
	struct shard_batch batch;
	struct shard_error why;
	int rc = shard_loader_next_device(j->trainer.loader, j->stream, &batch, &why);

	if (rc == SHARD_END) /* the next call begins another epoch */
		return;
	if (rc || shard_loader_release_after(j->trainer.loader, &batch, j->stream, &why))
		bench_die("%s", why.message);
	*bytes += batch.record_count * DATA_IMAGE_BYTES;
}

/* Until the event is reached.  As many as the ring has were there before, and do not count. */
static void take_batches(struct beside *s, cudaEvent_t end)
{
	uint64_t before = s->j->trainer.options.slot_count * s->j->batch_bytes, bytes = 0;
	double begin;

	while (bytes < before)
		take_batch(s->j, &bytes);
	begin = bench_seconds();
	bytes = 0;
	do
		take_batch(s->j, &bytes);
	while (cudaEventQuery(end) == cudaErrorNotReady);
	CUDA(cudaStreamSynchronize(s->j->stream));
	s->bytes += (double)bytes;
	s->seconds += bench_seconds() - begin;
}

static double run_multiply(struct beside *s, bool beside_batches)
{
	const int launches = MULTIPLY_LAUNCHES;
	struct job *j = s->j;
	double seconds;
	float *out;

	CUDA(cudaMalloc((void **)&out, j->blocks * 256 * sizeof(float)));
	CUDA(cudaEventRecord(j->begin[0], j->other));
	for (int i = 0; i < launches; i++)
		multiply<<<j->blocks, 256, 0, j->other>>>(out, MULTIPLY_ROUNDS);
	CUDA(cudaEventRecord(j->end[0], j->other));
	if (beside_batches)
		take_batches(s, j->end[0]);
	seconds = job_elapsed_seconds(j->begin[0], j->end[0]);
	CUDA(cudaFree(out));
	return launches / seconds;
}

static double run_beside(void *context)
{
	return run_multiply((struct beside *)context, true);
}

static double run_alone(void *context)
{
	return run_multiply((struct beside *)context, false);
}

static void beside_row(struct bench *b, struct job *j)
{
	struct beside s = {j, 0, 0};
	struct bench_row row = {};

	row.name = "gpu/beside-compute";
	row.unit = "kernels/s";
	row.context = &s;
	row.side[0] = {"multiply, while batches come", run_beside, job_open_stream, job_close_stream, 0};
	row.side[1] = {"multiply, alone", run_alone, NULL, NULL, 0};
	if (bench_run(b, &row) > 0) {
		job_note(j);
		bench_figure(b, "gpu/beside-compute/stream", "GB/s", s.bytes / s.seconds / 1e9);
	}
}

/* ---- the first batch ---- */

static double run_first(void *context)
{
	struct job *j = (struct job *)context;
	struct shard_batch batch;
	struct shard_error why;
	double begin = bench_seconds(), seconds;

	if (shard_loader_next_device(j->trainer.loader, j->stream, &batch, &why))
		bench_die("%s", why.message);
	CUDA(cudaStreamSynchronize(j->stream));
	seconds = bench_seconds() - begin;
	if (shard_loader_release_after(j->trainer.loader, &batch, j->stream, &why))
		bench_die("%s", why.message);
	return seconds;
}

static bool open_first(void *context)
{
	trainer_open_loader(&((struct job *)context)->trainer);
	return true;
}

static void first_row(struct bench *b, struct job *j)
{
	uint32_t slots = j->trainer.options.slot_count;
	struct bench_row row = {};

	row.name = "gpu/first-batch";
	row.unit = "s";
	row.less_is_better = true;
	row.context = j;
	row.side[0] = {"first batch of a loader", run_first, open_first, job_close_loader, 0};
	j->trainer.options.slot_count = (uint32_t)(((uint64_t)FIRST_GIB << 30) / j->batch_bytes);
	bench_run(b, &row);
	j->trainer.options.slot_count = slots;
}

int main(int argc, char **argv)
{
	static const unsigned threads[] = {0, 1, 2, 4, 6, 8, 12};
	struct bench *b = bench_open(argc, argv);
	struct job job = {};

	job_open(b, &job);
	copy_rows(b, &job);
	stream_count_rows(b, &job);
	for (unsigned t : threads)
		stream_row(b, &job, t);
	torch_row(b, &job);
	idle_rows(b, &job);
	beside_row(b, &job);
	first_row(b, &job);
	transform_rows(b, &job);
	small_rows(b, &job);
	pool_rows(b, &job);
	job_close(&job);
	return bench_close(b);
}
