/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_pool.cu - a pool in the GPU's memory: what it costs to fill, and what is left to do once it
 * holds everything
 *
 * A pool with room for a part of the dataset is filled again in each epoch.  Runs are epochs of one
 * loader, one behind the other, so that as much is fetched ahead at the end of each as at its
 * beginning.
 */
#include <stdio.h>

#include "bench/common/cold.h"
#include "bench/gpu_job.h"
#include "shard_gpu.h"

#ifndef POOL_LANES
#define POOL_LANES	 8
#define POOL_WINDOW_RUNS 4
#define POOL_RUN_RECORDS 27   /* 4.1 MB, one read */
#define POOL_AHEAD	 0.15 /* of an epoch: by so much more the ring may be ahead behind a run than before it */
#endif

#ifndef SMALL_SHARD_BYTES
#define SMALL_SHARD_BYTES (UINT64_C(128) << 20)
#define SMALL_BATCH_BYTES (UINT64_C(16) << 20)
#define SMALL_WINDOW_RUNS 8 /* of 256 KiB, by default */
#endif

struct pool_job {
	struct job *j;
	uint64_t device_before; /* bytes that disks gave */
};

static double run_epoch(void *context)
{
	return job_run_epoch(((struct pool_job *)context)->j);
}

static double run_within(void *context)
{
	struct job *j = ((struct pool_job *)context)->j;

	return job_copy_batches(j, j->device + j->batch_bytes, cudaMemcpyDeviceToDevice);
}

static bool note_device(void *context)
{
	((struct pool_job *)context)->device_before = data_device_bytes();
	return true;
}

static bool came_from_device(void *context)
{
	struct pool_job *p = (struct pool_job *)context;
	double bytes = (double)(data_device_bytes() - p->device_before), want = (double)p->j->epoch_bytes;

	return (bytes >= (1 - POOL_AHEAD) * want && bytes <= (1 + POOL_AHEAD) * want) ||
	       bench_skip("the disk gave %.1f MB for an epoch of %.1f MB", bytes / 1e6, want / 1e6);
}

static void ask_for_pool(struct pool_job *p, uint64_t pool_bytes, uint32_t path)
{
	struct shard_loader_options *o = &p->j->trainer.options;
	bool is_small = p->j->files.record_bytes < DATA_IMAGE_BYTES;

	o->order.shuffle = SHARD_SHUFFLE_WINDOWS;
	o->order.run_records = is_small ? 0 : POOL_RUN_RECORDS;
	o->order.window_runs = is_small ? SMALL_WINDOW_RUNS : POOL_WINDOW_RUNS;
	o->order.lane_count = POOL_LANES;
	o->gpu.pool_bytes = pool_bytes;
	o->path = path;
}

/* A loader with such a pool, an epoch behind its start. */
static void open_pool(struct pool_job *p, uint64_t pool_bytes, uint32_t path)
{
	ask_for_pool(p, pool_bytes, path);
	job_open_warm(p->j);
}

/* After its row, which gets the note. */
static void close_pool(struct pool_job *p)
{
	job_close_loader(p->j);
	job_note(p->j);
}

static void held_row(struct bench *b, struct pool_job *p)
{
	struct bench_row row = job_row(p->j, "gpu/pool/held", p);
	struct shard_loader_stats before;

	if (!bench_wants(b, row.name))
		return;
	open_pool(p, SHARD_POOL_ALL, SHARD_PATH_AUTO);
	/* A batch to copy from, and one to copy to. */
	CUDA(cudaFree(p->j->device));
	CUDA(cudaMalloc((void **)&p->j->device, 2 * p->j->batch_bytes));
	row.side[0] = {"epochs of a dataset that is held", run_epoch, NULL, NULL, 0};
	row.side[1] = {"cudaMemcpyAsync, device to device", run_within, NULL, NULL, 0};
	shard_loader_stats(p->j->trainer.loader, &before);
	bench_run(b, &row);
	close_pool(p);
	bench_figure(b, "gpu/pool/held/link", "bytes", (double)(p->j->stats.device_bytes - before.device_bytes));
}

/* Epochs of small records, which come to a pool in runs out of the page cache. */
static void small_row(struct bench *b, const struct job *with, uint64_t record_bytes)
{
	char folder[32];
	struct data_shape shape = {folder, record_bytes, 8, SMALL_SHARD_BYTES / record_bytes, SHARD_RAW};
	struct job j = *with; /* its own but for what copies need */
	struct pool_job p = {};
	struct bench_row row;
	char name[64];

	p.j = &j;
	snprintf(name, sizeof(name), "gpu/stream/%llu", (unsigned long long)record_bytes);
	if (!bench_wants(b, name))
		return;
	/* Of other records, if a process failed before it removed them, it is another one. */
	snprintf(folder, sizeof(folder), "small-%llu", (unsigned long long)record_bytes);
	j.trainer = {};
	j.trainer.dir = data_make(b, &shape);
	j.trainer.options.batch_records = (uint32_t)(SMALL_BATCH_BYTES / record_bytes);
	j.trainer.options.order.seed = 1;
	j.trainer.options.tail = SHARD_KEEP;
	j.trainer.options.slot_count = 8;
	data_files_open(&j.files, j.trainer.dir);
	j.epoch_bytes = j.files.record_count * record_bytes;
	row = job_row(&j, name, &p);
	row.side[0] = {"a pool filled from the page cache", run_epoch, NULL, NULL, 0};
	row.side[1] = {"copy engine, page-locked", job_run_link, NULL, NULL, 0};
	if (!data_warm(&j.files)) {
		bench_skipped(b, name, bench_skip_reason());
	} else {
		open_pool(&p, j.epoch_bytes / 4 * 3, SHARD_PATH_AUTO);
		bench_run(b, &row);
		close_pool(&p);
		job_tell_waits(b, name, &j);
	}
	trainer_close(&j.trainer);
	data_files_close(&j.files);
	data_remove((char *)j.trainer.dir);
}

void small_rows(struct bench *b, struct job *j)
{
	small_row(b, j, 4096);
	small_row(b, j, 64);
}

void pool_rows(struct bench *b, struct job *j)
{
	uint64_t part = j->epoch_bytes / 4 * 3;
	struct pool_job p = {};
	struct bench_row cache = job_row(j, "gpu/pool/cache", &p), direct = job_row(j, "gpu/pool/direct", &p);

	p.j = j;
	held_row(b, &p);
	cache.side[0] = {"filled from the page cache", run_epoch, NULL, NULL, 0};
	cache.side[1] = {"copy engine, page-locked", job_run_link, NULL, NULL, 0};
	if (bench_wants(b, cache.name)) {
		open_pool(&p, part, SHARD_PATH_AUTO);
		bench_run(b, &cache);
		close_pool(&p);
		job_tell_waits(b, cache.name, j);
	}
	direct.side[0] = {"filled by O_DIRECT", run_epoch, note_device, came_from_device, 0};
	trainer_close(&j->trainer);
	j->trainer.check = SHARD_CHECK_NEVER; /* what is asked is what reading costs */
	if (!bench_wants(b, direct.name))
		return;
	if (!data_evict(&j->files)) {
		bench_skipped(b, direct.name, bench_skip_reason());
	} else {
		open_pool(&p, part, SHARD_PATH_DIRECT);
		bench_run(b, &direct);
		close_pool(&p);
		bench_note("%.3g of %.3g GB past the page cache, by %s", (double)j->stats.direct_bytes / 1e9,
			   (double)j->stats.filled_bytes / 1e9, j->stats.has_uring ? "io_uring" : "pread");
	}
}
