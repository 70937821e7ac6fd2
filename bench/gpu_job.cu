/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_job.cu - see gpu_job.h: an epoch as a trainer calls it, and bare copies
 */
#include "bench/common/cold.h"
#include "bench/gpu_job.h"
#include "shard_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifndef FULL_THREADS
#define FULL_THREADS 512 /* the multiprocessors that there are take 1024, 1536 or 2048 */
#endif
#ifndef SHARD_RECORDS
#define SHARD_RECORDS 1750 /* of 8 shards: 2.1 GB */
#endif

/* Nothing, for that many ticks of the multiprocessor's clock. */
__global__ void wait_ticks(long long ticks)
{
	long long begin = clock64();

	while (clock64() - begin < ticks)
		;
}

double job_elapsed_seconds(cudaEvent_t begin, cudaEvent_t end)
{
	float ms = 0;

	CUDA(cudaEventSynchronize(end));
	CUDA(cudaEventElapsedTime(&ms, begin, end));
	return ms / 1e3;
}

/* ---- an epoch ---- */

void job_queue_step(struct job *j, uint64_t step)
{
	CUDA(cudaEventRecord(j->begin[step], j->stream));
	if (j->is_full)
		wait_ticks<<<j->full_blocks, FULL_THREADS, 0, j->stream>>>(j->ticks);
	else
		wait_ticks<<<1, 1, 0, j->stream>>>(j->ticks);
	CUDA(cudaEventRecord(j->end[step], j->stream));
}

uint64_t job_queue_epoch(struct job *j)
{
	struct shard_batch batch;
	struct shard_error why;
	uint64_t rows = 0, step = 0;
	int rc;

	while ((rc = shard_loader_next_device(j->trainer.loader, j->stream, &batch, &why)) == SHARD_OK) {
		if (j->ticks)
			job_queue_step(j, step++);
		rows += batch.record_count;
		if (shard_loader_release_after(j->trainer.loader, &batch, j->stream, &why))
			bench_die("%s", why.message);
	}
	if (rc < 0)
		bench_die("%s", why.message);
	if (rows != j->files.record_count)
		bench_die("the epoch had %llu of %llu records", (unsigned long long)rows,
			  (unsigned long long)j->files.record_count);
	return step;
}

double job_run_epoch(struct job *j)
{
	double begin = bench_seconds();

	job_queue_epoch(j);
	CUDA(cudaStreamSynchronize(j->stream));
	return (double)j->epoch_bytes / (bench_seconds() - begin) / 1e9;
}

double job_run_anew(struct job *j)
{
	struct shard_error why;
	double begin = bench_seconds();

	if (shard_loader_seek(j->trainer.loader, 1, 0, &why))
		bench_die("%s", why.message);
	job_run_epoch(j);
	return (double)j->epoch_bytes / (bench_seconds() - begin) / 1e9;
}

bool job_open_warm(void *context)
{
	struct job *j = (struct job *)context;

	trainer_open_loader(&j->trainer);
	job_queue_epoch(j);
	CUDA(cudaStreamSynchronize(j->stream));
	return true;
}

bool job_close_loader(void *context)
{
	struct job *j = (struct job *)context;

	shard_loader_stats(j->trainer.loader, &j->stats);
	j->has_problem = shard_loader_pin_problem(j->trainer.loader, &j->problem) == SHARD_OK;
	trainer_close_loader(&j->trainer);
	return true;
}

bool job_open_stream(void *context)
{
	return job_open_warm(*(struct job **)context);
}

double job_run_stream(void *context)
{
	return job_run_anew(*(struct job **)context);
}

bool job_close_stream(void *context)
{
	return job_close_loader(*(struct job **)context);
}

void job_note(const struct job *j)
{
	const struct shard_loader_stats *s = &j->stats;

	bench_note("%u threads; of %.3g GB that came to the GPU, %.3g GB out of the page cache, %.3g GB from pageable "
		   "memory; page-locked: %.3g GB of the page cache, %.3g GB of the ring; the GPU hashed %.4g units "
		   "for %.4g records, and %llu waits for that came on %llu batches, %.3g s in all",
		   s->thread_count, (double)s->device_bytes / 1e9, (double)s->cached_bytes / 1e9,
		   (double)s->pageable_bytes / 1e9, (double)s->registered_bytes / 1e9, (double)s->pinned_bytes / 1e9,
		   (double)s->device_checked_count, (double)s->record_count, (unsigned long long)s->check_wait_count,
		   (unsigned long long)s->batch_count, (double)s->device_wait_ns / 1e9);
	if (j->has_problem)
		bench_note("some of it by a slower way: %s", j->problem.message);
}

void job_tell_waits(struct bench *b, const char *row, const struct job *j)
{
	const struct shard_loader_stats *s = &j->stats;
	char name[64];

	snprintf(name, sizeof(name), "%s/waits", row);
	bench_figure(b, name, "%", 100.0 * (double)s->check_wait_count / (double)s->batch_count);
}

double job_copy_batches(struct job *j, const void *from, enum cudaMemcpyKind kind)
{
	uint64_t count = (j->epoch_bytes + j->batch_bytes - 1) / j->batch_bytes;
	double begin = bench_seconds();

	for (uint64_t i = 0; i < count; i++)
		CUDA(cudaMemcpyAsync(j->device, from, j->batch_bytes, kind, j->stream));
	CUDA(cudaStreamSynchronize(j->stream));
	/* The last batch of an epoch may be a part; here all are whole. */
	return (double)(count * j->batch_bytes) / (bench_seconds() - begin) / 1e9;
}

double job_run_link(void *context)
{
	struct job *j = *(struct job **)context;

	return job_copy_batches(j, j->locked, cudaMemcpyHostToDevice);
}

struct bench_row job_row(const struct job *j, const char *name, void *context)
{
	struct bench_row row = {};

	row.name = name;
	row.unit = "GB/s";
	row.cpu_unit = "CPU s/GB";
	row.cpu_work = (double)j->epoch_bytes / 1e9;
	row.context = context;
	return row;
}

/* ---- the job ---- */

static char *map_memory(uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		bench_die("%llu bytes of memory: %m", (unsigned long long)bytes);
	return (char *)memory;
}

static double measure_ticks(struct job *j)
{
	const long long ticks = 20 * 1000 * 1000;

	for (int i = 0; i < 2; i++) { /* the first one brings the clock up */
		CUDA(cudaEventRecord(j->begin[0], j->stream));
		wait_ticks<<<1, 1, 0, j->stream>>>(ticks);
		CUDA(cudaEventRecord(j->end[0], j->stream));
		CUDA(cudaStreamSynchronize(j->stream));
	}
	return (double)ticks / job_elapsed_seconds(j->begin[0], j->end[0]);
}

static void print_device(struct job *j)
{
	cudaDeviceProp device;
	int driver = 0;

	CUDA(cudaGetDeviceProperties(&device, 0));
	CUDA(cudaDriverGetVersion(&driver));
	printf("{\"gpu\": \"%s\", \"compute\": \"%d.%d\", \"driver\": \"%d.%d\", \"pci\": \"%04x:%02x:%02x\"}\n",
	       device.name, device.major, device.minor, driver / 1000, driver % 1000 / 10, device.pciDomainID,
	       device.pciBusID, device.pciDeviceID);
	fprintf(stderr, "%s, driver for CUDA %d.%d\n", device.name, driver / 1000, driver % 1000 / 10);
	j->cache_bytes = (uint64_t)device.l2CacheSize;
	fflush(stdout); /* also where this is stopped before there is a row */
	j->blocks = device.multiProcessorCount * 8;
	j->full_blocks = device.multiProcessorCount * (device.maxThreadsPerMultiProcessor / FULL_THREADS);
}

static void open_events(struct job *j)
{
	j->steps_most = j->files.record_count / BATCH + 1;
	j->begin = (cudaEvent_t *)calloc(j->steps_most, sizeof(*j->begin));
	j->end = (cudaEvent_t *)calloc(j->steps_most, sizeof(*j->end));
	if (!j->begin || !j->end)
		bench_die("out of memory");
	for (uint64_t i = 0; i < j->steps_most; i++) {
		CUDA(cudaEventCreate(&j->begin[i]));
		CUDA(cudaEventCreate(&j->end[i]));
	}
}

void job_open(struct bench *b, struct job *j)
{
	const struct data_shape shape = {"photos", DATA_IMAGE_BYTES, 8, SHARD_RECORDS, SHARD_RAW};

	CUDA(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync)); /* a host that spins while it waits looks busy */
	CUDA(cudaStreamCreateWithFlags(&j->stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&j->other, cudaStreamNonBlocking));
	print_device(j);
	j->trainer.dir = data_make(b, &shape);
	data_files_open(&j->files, j->trainer.dir);
	if (!data_warm(&j->files))
		bench_die("%s", bench_skip_reason());
	j->trainer.options.batch_records = BATCH;
	j->trainer.options.order.seed = 1;
	j->trainer.options.tail = SHARD_KEEP;
	j->trainer.options.slot_count = 8;
	j->batch_bytes = BATCH * DATA_IMAGE_BYTES;
	j->epoch_bytes = j->files.record_count * DATA_IMAGE_BYTES;
	j->locked = map_memory(j->batch_bytes);
	CUDA(cudaHostRegister(j->locked, j->batch_bytes, cudaHostRegisterDefault));
	j->plain = map_memory(j->batch_bytes);
	CUDA(cudaMalloc((void **)&j->device, j->batch_bytes));
	open_events(j);
	j->ticks_per_second = measure_ticks(j);
}

void job_close(struct job *j)
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
	data_files_close(&j->files);
	free((char *)j->trainer.dir); /* the dataset is there for the next process with this --dir */
	CUDA(cudaStreamDestroy(j->stream));
	CUDA(cudaStreamDestroy(j->other));
}
