/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.cu - batches to a GPU: against its copy engine, in CPU seconds, and how long a training loop waits for them
 *
 *   make bench-gpu        needs nvcc and a GPU; the rows are those of bench/README.md
 *
 * The records lie in the page cache.  An epoch goes by shard_loader_next_device() as a trainer calls it, its work queued
 * on a stream and the batch released behind it; it begins with a seek, so that nothing was prepared for it but the ring,
 * whose pages an epoch before it has locked.  The ceiling is what the copy engine does when it copies blocks as large as a
 * batch, one behind the other, out of memory that is page-locked, and nothing else.  Kernels stand for a trainer: one that
 * waits a given time, and one that keeps all multiprocessors multiplying.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bench/common/data.h"
#include "bench/common/trainer.h"

#ifndef SHARD_RECORDS
#define SHARD_RECORDS 1750 /* of 8 shards: 2.1 GB */
#endif
#define BATCH	  256
#define FIRST_GIB 1

#define CUDA(call)                                                                   \
	do {                                                                         \
		cudaError_t failed_ = (call);                                        \
		if (failed_ != cudaSuccess)                                          \
			bench_die("%s: %s", #call, cudaGetErrorString(failed_));     \
	} while (0)

/* ---- kernels ---- */

/* Nothing, for so many ticks of the multiprocessor's clock. */
__global__ void wait_ticks(long long ticks)
{
	long long begin = clock64();

	while (clock64() - begin < ticks)
		;
}

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

/* ---- what all rows share ---- */

struct job {
	struct trainer trainer;
	struct data_files files;
	cudaStream_t stream, other;
	uint64_t batch_bytes, epoch_bytes;
	char *locked, *plain, *device; /* a batch each, page-locked, pageable and on the GPU */
	float *out;
	int blocks;
	long long ticks; /* of a step's kernel; 0: none */
	double ticks_per_second;
	struct shard_loader_stats stats; /* of the loader that was closed last */
	cudaEvent_t *begin, *end;
	uint64_t steps_most;
};

static char *map_memory(uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		bench_die("%llu bytes of memory: %m", (unsigned long long)bytes);
	return (char *)memory;
}

static double elapsed_seconds(cudaEvent_t begin, cudaEvent_t end)
{
	float ms = 0;

	CUDA(cudaEventElapsedTime(&ms, begin, end));
	return ms / 1e3;
}

/* Queue an epoch, a step's kernel behind each batch if steps take any time.  Returns their number; they may not be done yet. */
static uint64_t queue_epoch(struct job *j)
{
	struct shard_batch batch;
	struct shard_error why;
	uint64_t rows = 0, step = 0;
	int rc;

	while ((rc = shard_loader_next_device(j->trainer.loader, j->stream, &batch, &why)) == SHARD_OK) {
		if (j->ticks) {
			CUDA(cudaEventRecord(j->begin[step], j->stream));
			wait_ticks<<<1, 1, 0, j->stream>>>(j->ticks);
			CUDA(cudaEventRecord(j->end[step++], j->stream));
		}
		rows += batch.record_count;
		if (shard_loader_release_after(j->trainer.loader, &batch, j->stream, &why))
			bench_die("%s", why.message);
	}
	if (rc < 0)
		bench_die("%s", why.message);
	if (rows != j->files.record_count)
		bench_die("the epoch had %llu of %llu records", (unsigned long long)rows, (unsigned long long)j->files.record_count);
	return step;
}

/* An epoch that nobody measures, which locks the ring's pages and ends behind all its work. */
static bool open_warm(void *context)
{
	struct job *j = (struct job *)context;
	struct shard_error why;

	trainer_open_loader(&j->trainer);
	queue_epoch(j);
	CUDA(cudaStreamSynchronize(j->stream));
	if (shard_loader_pin_problem(j->trainer.loader, &why) == SHARD_OK)
		return bench_skip("%s", why.message);
	return true;
}

static bool close_loader(void *context)
{
	trainer_close_loader(&((struct job *)context)->trainer);
	return true;
}

/* ---- the stream of batches, and the copy engine ---- */

static double run_stream(void *context)
{
	struct job *j = (struct job *)context;
	double begin = bench_seconds(), seconds;
	struct shard_error why;

	if (shard_loader_seek(j->trainer.loader, 1, 0, &why))
		bench_die("%s", why.message);
	queue_epoch(j);
	CUDA(cudaStreamSynchronize(j->stream));
	seconds = bench_seconds() - begin;
	return (double)j->epoch_bytes / seconds / 1e9;
}

static double copy_epoch(struct job *j, const char *from)
{
	double begin = bench_seconds();

	for (uint64_t done = 0; done < j->epoch_bytes; done += j->batch_bytes)
		CUDA(cudaMemcpyAsync(j->device, from, j->batch_bytes, cudaMemcpyHostToDevice, j->stream));
	CUDA(cudaStreamSynchronize(j->stream));
	/* The last batch of an epoch may be a part; here all are whole. */
	return (double)((j->epoch_bytes + j->batch_bytes - 1) / j->batch_bytes * j->batch_bytes) / (bench_seconds() - begin) / 1e9;
}

static double run_ceiling(void *context)
{
	return copy_epoch((struct job *)context, ((struct job *)context)->locked);
}

static double run_pageable(void *context)
{
	return copy_epoch((struct job *)context, ((struct job *)context)->plain);
}

/* Tells of the loader before it closes, so that it is not at work beside other sides. */
static bool close_stream(void *context)
{
	struct job *j = (struct job *)context;

	shard_loader_stats(j->trainer.loader, &j->stats);
	return close_loader(context);
}

/* With so many threads; 0: as many as the loader chooses. */
static void stream_row(struct bench *b, struct job *j, unsigned threads)
{
	struct bench_row row = {};
	char name[64] = "gpu/stream/150528";

	if (threads)
		snprintf(name, sizeof(name), "gpu/stream/150528/%u", threads);
	row.name = name;
	row.unit = "GB/s";
	row.cpu_unit = "CPU s/GB";
	row.cpu_work = (double)j->epoch_bytes / 1e9;
	row.context = j;
	row.side[0] = {"shard_loader_next_device", run_stream, open_warm, close_stream, 0};
	row.side[1] = {"copy engine, page-locked", run_ceiling, NULL, NULL, 0};
	row.side[2] = {"cudaMemcpyAsync, pageable", run_pageable, NULL, NULL, 0};
	j->trainer.options.thread_count = threads;
	if (bench_run(b, &row) > 0)
		bench_note("%u threads; %.3g GB of the ring page-locked, %.3g GB copied from pageable memory", j->stats.thread_count,
			   (double)j->stats.pinned_bytes / 1e9, (double)j->stats.pageable_bytes / 1e9);
}

/* ---- a loop that trains: how long the GPU has nothing to do ---- */

static double run_idle(void *context)
{
	struct job *j = (struct job *)context;
	uint64_t steps = queue_epoch(j);
	double idle = 0;

	CUDA(cudaStreamSynchronize(j->stream));
	for (uint64_t i = 1; i < steps; i++)
		idle += elapsed_seconds(j->end[i - 1], j->begin[i]);
	return 100 * idle / elapsed_seconds(j->begin[0], j->end[steps - 1]);
}

/* Steps of `times` what a batch takes to be copied. */
static void idle_row(struct bench *b, struct job *j, double copy_seconds, double times)
{
	struct bench_row row = {};
	char name[64];

	snprintf(name, sizeof(name), "gpu/idle/%.3g", times);
	row.name = name;
	row.unit = "%";
	row.less_is_better = true;
	row.context = j;
	row.side[0] = {"GPU idle between steps", run_idle, open_warm, close_loader, 0};
	j->ticks = (long long)(times * copy_seconds * j->ticks_per_second);
	if (bench_wants(b, name)) {
		bench_run(b, &row);
		bench_note("steps of %.2f ms; a batch of %.1f MB is copied in %.2f ms", 1e3 * times * copy_seconds,
			   (double)j->batch_bytes / 1e6, 1e3 * copy_seconds);
	}
	j->ticks = 0;
}

/* ---- what the copies cost kernels that compute ---- */

static double run_multiply(struct job *j, bool beside_batches)
{
	const int launches = 50, rounds = 20000;
	double seconds;

	CUDA(cudaEventRecord(j->begin[0], j->other));
	for (int i = 0; i < launches; i++)
		multiply<<<j->blocks, 256, 0, j->other>>>(j->out, rounds);
	CUDA(cudaEventRecord(j->end[0], j->other));
	if (beside_batches)
		do
			queue_epoch(j);
		while (cudaEventQuery(j->end[0]) == cudaErrorNotReady);
	CUDA(cudaStreamSynchronize(j->other));
	seconds = elapsed_seconds(j->begin[0], j->end[0]);
	CUDA(cudaStreamSynchronize(j->stream));
	return launches / seconds;
}

static double run_beside(void *context)
{
	return run_multiply((struct job *)context, true);
}

static double run_alone(void *context)
{
	return run_multiply((struct job *)context, false);
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

static void other_rows(struct bench *b, struct job *j)
{
	struct bench_row beside = {}, first = {};
	uint32_t slots = j->trainer.options.slot_count;

	beside.name = "gpu/beside-compute";
	beside.unit = "kernels/s";
	beside.context = j;
	beside.side[0] = {"multiply, while batches come", run_beside, open_warm, close_loader, 0};
	beside.side[1] = {"multiply, alone", run_alone, NULL, NULL, 0};
	bench_run(b, &beside);
	first.name = "gpu/first-batch";
	first.unit = "s";
	first.less_is_better = true;
	first.context = j;
	first.side[0] = {"first batch of a loader", run_first, open_first, close_loader, 0};
	j->trainer.options.slot_count = (uint32_t)(((uint64_t)FIRST_GIB << 30) / j->batch_bytes);
	bench_run(b, &first);
	j->trainer.options.slot_count = slots;
}

/* ---- the job ---- */

static double measure_ticks(struct job *j)
{
	const long long ticks = 20 * 1000 * 1000;

	for (int i = 0; i < 2; i++) { /* the first one brings the clock up */
		CUDA(cudaEventRecord(j->begin[0], j->stream));
		wait_ticks<<<1, 1, 0, j->stream>>>(ticks);
		CUDA(cudaEventRecord(j->end[0], j->stream));
		CUDA(cudaStreamSynchronize(j->stream));
	}
	return (double)ticks / elapsed_seconds(j->begin[0], j->end[0]);
}

static void print_device(struct job *j)
{
	cudaDeviceProp device;
	int driver = 0;

	CUDA(cudaGetDeviceProperties(&device, 0));
	CUDA(cudaDriverGetVersion(&driver));
	printf("{\"gpu\": \"%s\", \"compute\": \"%d.%d\", \"driver\": \"%d.%d\", \"pci\": \"%04x:%02x:%02x\"}\n", device.name, device.major,
	       device.minor, driver / 1000, driver % 1000 / 10, device.pciDomainID, device.pciBusID, device.pciDeviceID);
	fprintf(stderr, "%s, driver for CUDA %d.%d\n", device.name, driver / 1000, driver % 1000 / 10);
	j->blocks = device.multiProcessorCount * 8;
}

static void job_open(struct bench *b, struct job *j)
{
	const struct data_shape shape = {"photos", DATA_IMAGE_BYTES, 8, SHARD_RECORDS, SHARD_RAW};

	CUDA(cudaStreamCreateWithFlags(&j->stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&j->other, cudaStreamNonBlocking));
	print_device(j);
	j->trainer.dir = data_make(b, &shape);
	data_files_open(&j->files, j->trainer.dir);
	if (!data_warm(&j->files))
		bench_die("%s", bench_skip_reason());
	j->trainer.options.batch_records = BATCH;
	j->trainer.options.seed = 1;
	j->trainer.options.tail = SHARD_KEEP;
	j->trainer.options.slot_count = 8;
	j->batch_bytes = BATCH * DATA_IMAGE_BYTES;
	j->epoch_bytes = j->files.record_count * DATA_IMAGE_BYTES;
	j->locked = map_memory(j->batch_bytes);
	CUDA(cudaHostRegister(j->locked, j->batch_bytes, cudaHostRegisterDefault));
	j->plain = map_memory(j->batch_bytes);
	CUDA(cudaMalloc((void **)&j->device, j->batch_bytes));
	CUDA(cudaMalloc((void **)&j->out, j->blocks * 256 * sizeof(float)));
	j->steps_most = j->files.record_count / BATCH + 1;
	j->begin = (cudaEvent_t *)calloc(j->steps_most, sizeof(*j->begin));
	j->end = (cudaEvent_t *)calloc(j->steps_most, sizeof(*j->end));
	if (!j->begin || !j->end)
		bench_die("out of memory");
	for (uint64_t i = 0; i < j->steps_most; i++) {
		CUDA(cudaEventCreate(&j->begin[i]));
		CUDA(cudaEventCreate(&j->end[i]));
	}
	j->ticks_per_second = measure_ticks(j);
}

static void job_close(struct job *j)
{
	for (uint64_t i = 0; i < j->steps_most; i++) {
		CUDA(cudaEventDestroy(j->begin[i]));
		CUDA(cudaEventDestroy(j->end[i]));
	}
	free(j->begin);
	free(j->end);
	trainer_close(&j->trainer);
	CUDA(cudaHostUnregister(j->locked));
	munmap(j->locked, j->batch_bytes);
	munmap(j->plain, j->batch_bytes);
	CUDA(cudaFree(j->device));
	CUDA(cudaFree(j->out));
	data_files_close(&j->files);
	data_remove((char *)j->trainer.dir);
	CUDA(cudaStreamDestroy(j->stream));
	CUDA(cudaStreamDestroy(j->other));
}

int main(int argc, char **argv)
{
	static const double times[] = {0.5, 1.25, 2, 4};
	static const unsigned threads[] = {1, 2, 4, 6};
	struct bench *b = bench_open(argc, argv);
	struct job job = {};
	double copy_seconds;

	job_open(b, &job);
	stream_row(b, &job, 0);
	for (unsigned t : threads)
		stream_row(b, &job, t);
	job.trainer.options.thread_count = 0;
	copy_seconds = (double)job.batch_bytes / 1e9 / run_ceiling(&job);
	for (double t : times)
		idle_row(b, &job, copy_seconds, t);
	other_rows(b, &job);
	job_close(&job);
	return bench_close(b);
}
