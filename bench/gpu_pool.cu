/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_pool.cu - a pool in the GPU's memory: what it costs to fill, and what is left to do once it
 * holds everything
 *
 * A pool with room for a part of the dataset is filled anew in each epoch.  Runs are epochs of one
 * loader, one behind the other, so that as much is fetched ahead at the end of each as at its
 * beginning; but of pools whose batches are transformed, which hold everything, and of which the
 * GPU's memory may have no room for two.
 */
#include "bench/common/cold.h"
#include "bench/gpu_job.h"
#include "shard_gpu.h"

#ifndef POOL_LANES
#define POOL_LANES	 8
#define POOL_WINDOW_RUNS 4
#define POOL_RUN_RECORDS 27   /* 4.1 MB, one read */
#define POOL_AHEAD	 0.15 /* of an epoch: by so much more the ring may be ahead behind a run than before it */
#endif

struct pool_job {
	struct job *j;
	uint64_t device_before; /* bytes that disks gave */
	struct shard_loader_stats stats;
	struct shard_transform *transform;
	char *to; /* a batch, transformed */
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

static struct bench_row row_of(struct pool_job *p, const char *name)
{
	struct bench_row row = {};

	row.name = name;
	row.unit = "GB/s";
	row.cpu_unit = "CPU s/GB";
	row.cpu_work = (double)p->j->epoch_bytes / 1e9;
	row.context = p;
	return row;
}

static void ask_for_pool(struct pool_job *p, uint64_t pool_bytes, uint32_t path)
{
	struct shard_loader_options *o = &p->j->trainer.options;

	o->shuffle = SHARD_SHUFFLE_WINDOWS;
	o->run_records = POOL_RUN_RECORDS;
	o->window_runs = POOL_WINDOW_RUNS;
	o->lane_count = POOL_LANES;
	o->pool_bytes = pool_bytes;
	o->path = path;
}

/* A loader with such a pool, an epoch behind its start.  False if the row is skipped. */
static bool open_pool(struct bench *b, struct pool_job *p, const char *name, uint64_t pool_bytes, uint32_t path)
{
	ask_for_pool(p, pool_bytes, path);
	if (job_open_warm(p->j))
		return true;
	bench_skipped(b, name, bench_skip_reason());
	job_close_loader(p->j);
	return false;
}

static void close_pool(struct pool_job *p)
{
	shard_loader_stats(p->j->trainer.loader, &p->stats);
	job_close_loader(p->j);
}

static void held_row(struct bench *b, struct pool_job *p)
{
	struct bench_row row = row_of(p, "gpu/pool/held");
	struct shard_loader_stats before;

	if (!bench_wants(b, row.name) || !open_pool(b, p, row.name, SHARD_POOL_ALL, SHARD_PATH_AUTO))
		return;
	/* A batch to copy from, and one to copy to. */
	CUDA(cudaFree(p->j->device));
	CUDA(cudaMalloc((void **)&p->j->device, 2 * p->j->batch_bytes));
	row.side[0] = {"epochs of a dataset that is held", run_epoch, NULL, NULL, 0};
	row.side[1] = {"cudaMemcpyAsync, device to device", run_within, NULL, NULL, 0};
	shard_loader_stats(p->j->trainer.loader, &before);
	bench_run(b, &row);
	close_pool(p);
	bench_figure(b, "gpu/pool/held/link", "bytes", (double)(p->stats.device_bytes - before.device_bytes));
}

/* ---- transformed out of the pool ---- */

static double run_transform(void *context)
{
	struct pool_job *p = (struct pool_job *)context;
	struct job *j = p->j;
	struct shard_batch batch;
	struct shard_error why;
	double begin = bench_seconds();
	int rc;

	while ((rc = shard_loader_next_device(j->trainer.loader, j->stream, &batch, &why)) == SHARD_OK)
		if (shard_transform_launch(p->transform, &batch, NULL, 0, j->stream, p->to, &why) ||
		    shard_loader_release_after(j->trainer.loader, &batch, j->stream, &why))
			bench_die("%s", why.message);
	if (rc < 0)
		bench_die("%s", why.message);
	CUDA(cudaStreamSynchronize(j->stream));
	return (double)j->epoch_bytes / (bench_seconds() - begin) / 1e9;
}

/* The pool is full, and the kernels are there. */
static bool open_transform(struct pool_job *p, uint32_t in_place)
{
	struct shard_transform_options o = {};
	struct shard_error why;

	ask_for_pool(p, SHARD_POOL_ALL, SHARD_PATH_AUTO);
	p->j->trainer.options.pool_in_place = in_place;
	if (!job_open_warm(p->j))
		return false;
	o.size = sizeof(o);
	o.dtype = SHARD_F16;
	o.crop = SHARD_CROP_RANDOM;
	o.flip = 0.5;
	if (shard_transform_open(&p->transform, p->j->trainer.loader, "image", &o, &why))
		bench_die("%s", why.message);
	CUDA(cudaMalloc((void **)&p->to, BATCH * shard_transform_row_bytes(p->transform)));
	run_transform(p);
	return true;
}

static bool open_in_place(void *context)
{
	return open_transform((struct pool_job *)context, 1);
}

static bool open_gathered(void *context)
{
	return open_transform((struct pool_job *)context, 0);
}

static bool close_transform(void *context)
{
	struct pool_job *p = (struct pool_job *)context;

	shard_transform_close(p->transform);
	CUDA(cudaFree(p->to));
	p->j->trainer.options.pool_in_place = 0;
	return job_close_loader(p->j);
}

static void transform_row(struct bench *b, struct pool_job *p)
{
	struct bench_row row = row_of(p, "gpu/pool/transform");

	row.cpu_unit = NULL;
	row.side[0] = {"transformed in place", run_transform, open_in_place, close_transform, 0};
	row.side[1] = {"gathered, then transformed", run_transform, open_gathered, close_transform, 0};
	bench_run(b, &row);
}

void pool_rows(struct bench *b, struct job *j)
{
	uint64_t part = j->epoch_bytes / 4 * 3;
	struct pool_job p = {};
	struct bench_row cache = row_of((p.j = j, &p), "gpu/pool/cache"), direct = row_of(&p, "gpu/pool/direct");

	held_row(b, &p);
	transform_row(b, &p);
	cache.side[0] = {"filled from the page cache", run_epoch, NULL, NULL, 0};
	if (bench_wants(b, cache.name) && open_pool(b, &p, cache.name, part, SHARD_PATH_AUTO)) {
		bench_run(b, &cache);
		close_pool(&p);
	}
	direct.side[0] = {"filled by O_DIRECT", run_epoch, note_device, came_from_device, 0};
	trainer_close(&j->trainer);
	j->trainer.check = SHARD_CHECK_NEVER; /* what is asked is what reading costs */
	if (!bench_wants(b, direct.name))
		return;
	if (!data_evict(&j->files)) {
		bench_skipped(b, direct.name, bench_skip_reason());
	} else if (open_pool(b, &p, direct.name, part, SHARD_PATH_DIRECT)) {
		bench_run(b, &direct);
		close_pool(&p);
		bench_note("%.3g of %.3g GB past the page cache, by %s", (double)p.stats.direct_bytes / 1e9,
			   (double)p.stats.filled_bytes / 1e9, p.stats.has_uring ? "io_uring" : "pread");
	}
}
