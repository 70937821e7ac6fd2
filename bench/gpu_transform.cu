/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_transform.cu - the transform kernel against copies within the GPU's memory
 *
 * Batches are transformed in turn, one launch behind the other, timed by events of the GPU.  The
 * bytes that a launch must move are those of the pixels that it takes and of the numbers that it
 * makes; the bound is a copy from device to device that reads and writes as many together.
 *
 * Both go round more memory than a GPU's cache holds: CACHES times as much, and ROUND_BYTES at
 * least, of what is read, and more of what is written.  The batches are copies of a delivered one,
 * whose images are larger than what is made of them.
 */
#include <string.h>

#include "bench/gpu_job.h"
#include "shard_gpu.h"
#include "shard_transform.h"

#ifndef TRANSFORM_LAUNCHES
#define TRANSFORM_LAUNCHES 50
#endif
#define CACHES 4
#ifndef ROUND_BYTES
#define ROUND_BYTES (256ull << 20)
#endif

struct transforming {
	struct job *j;
	struct trainer trainer; /* of DATA_LARGE_IMAGE_BYTES */
	struct shard_transform *transform;
	struct shard_batch batch;
	uint32_t image;	      /* the number of the field */
	uint64_t moved_bytes; /* by one launch */
	uint64_t to_bytes;    /* that one launch, or copy, may write */
	uint64_t batch_bytes, batch_count;
	char *batches;	 /* [batch_count] of batch_bytes */
	char *from, *to; /* [batch_count] of moved_bytes / 2, to copy; of to_bytes */
};

static double run_transform(void *context)
{
	struct transforming *f = (struct transforming *)context;
	struct job *j = f->j;
	struct shard_error why;

	CUDA(cudaEventRecord(j->begin[0], j->stream));
	for (uint64_t i = 0; i < TRANSFORM_LAUNCHES; i++) {
		uint64_t at = i % f->batch_count;
		struct shard_batch batch = f->batch;

		batch.field[f->image].data = f->batches + at * f->batch_bytes;
		if (shard_transform_launch(f->transform, &batch, NULL, 0, j->stream, f->to + at * f->to_bytes, &why))
			bench_die("%s", why.message);
	}
	CUDA(cudaEventRecord(j->end[0], j->stream));
	return TRANSFORM_LAUNCHES * (double)f->moved_bytes / job_elapsed_seconds(j->begin[0], j->end[0]) / 1e9;
}

static double run_images(void *context)
{
	struct transforming *f = (struct transforming *)context;

	return run_transform(context) * 1e9 / (double)f->moved_bytes * f->batch.record_count;
}

static double run_copy(void *context)
{
	struct transforming *f = (struct transforming *)context;
	struct job *j = f->j;

	CUDA(cudaEventRecord(j->begin[0], j->stream));
	for (uint64_t i = 0; i < TRANSFORM_LAUNCHES; i++) {
		uint64_t at = i % f->batch_count;

		CUDA(cudaMemcpyAsync(f->to + at * f->to_bytes, f->from + at * (f->moved_bytes / 2), f->moved_bytes / 2,
				     cudaMemcpyDeviceToDevice, j->stream));
	}
	CUDA(cudaEventRecord(j->end[0], j->stream));
	return TRANSFORM_LAUNCHES * (double)f->moved_bytes / job_elapsed_seconds(j->begin[0], j->end[0]) / 1e9;
}

static void transform_row(struct bench *b, struct transforming *f, const char *name, uint32_t crop, uint32_t side,
			  uint32_t dtype)
{
	struct shard_transform_options o = {};
	struct bench_row row = {};
	struct shard_error why;
	uint64_t pixels = (uint64_t)side * side * 3, out;

	if (!bench_wants(b, name))
		return;
	o.size = sizeof(o);
	o.height = o.width = side;
	o.dtype = dtype;
	o.crop = crop;
	o.flip = 0.5;
	memcpy(o.mean, (const float[]){0.485f, 0.456f, 0.406f}, 3 * sizeof(float));
	memcpy(o.std, (const float[]){0.229f, 0.224f, 0.225f}, 3 * sizeof(float));
	if (shard_transform_open(&f->transform, f->trainer.loader, "image", &o, &why))
		bench_die("%s", why.message);
	out = f->batch.record_count * shard_transform_row_bytes(f->transform);
	f->moved_bytes = (f->batch.record_count * pixels + out) / 2 * 2;
	f->to_bytes = ((out > f->moved_bytes / 2 ? out : f->moved_bytes / 2) + 15) / 16 * 16;
	CUDA(cudaMalloc((void **)&f->to, f->batch_count * f->to_bytes));
	CUDA(cudaMalloc((void **)&f->from, f->batch_count * (f->moved_bytes / 2)));
	row.name = name;
	row.unit = crop == SHARD_CROP_RESIZED ? "images/s" : "GB/s";
	row.warm_up_count = 1; /* in which the driver compiles the kernel */
	row.context = f;
	row.side[0] = {"shard_transform_launch", crop == SHARD_CROP_RESIZED ? run_images : run_transform, NULL, NULL,
		       0};
	if (crop != SHARD_CROP_RESIZED) /* that reads parts of any size */
		row.side[1] = {"cudaMemcpyAsync, device to device", run_copy, NULL, NULL, 0};
	bench_run(b, &row);
	shard_transform_close(f->transform);
	CUDA(cudaFree(f->to));
	CUDA(cudaFree(f->from));
}

/* Copies of the batch: enough that no cache keeps one until its next turn. */
static void open_batches(struct transforming *f)
{
	const struct shard_rows *rows = &f->batch.field[f->image];
	uint64_t round = (uint64_t)f->j->cache_bytes * CACHES;

	round = round > ROUND_BYTES ? round : ROUND_BYTES;
	f->batch_bytes = f->batch.record_count * rows->stride;
	f->batch_count = (round + f->batch_bytes - 1) / f->batch_bytes;
	CUDA(cudaMalloc((void **)&f->batches, f->batch_count * f->batch_bytes));
	for (uint64_t i = 0; i < f->batch_count; i++)
		CUDA(cudaMemcpyAsync(f->batches + i * f->batch_bytes, rows->data, f->batch_bytes,
				     cudaMemcpyDeviceToDevice, f->j->stream));
	CUDA(cudaStreamSynchronize(f->j->stream));
	bench_note("transforms go round %.0f MB of images; the cache of the GPU has %.0f MB",
		   (double)(f->batch_count * f->batch_bytes) / 1e6, (double)f->j->cache_bytes / 1e6);
}

void transform_rows(struct bench *b, struct job *j)
{
	const struct data_shape shape = {"photos-256", DATA_LARGE_IMAGE_BYTES, 1, 2 * BATCH, SHARD_RAW};
	struct transforming f = {};
	struct shard_error why;

	if (!bench_wants(b, "gpu/transform/f16") && !bench_wants(b, "gpu/transform/f32") &&
	    !bench_wants(b, "gpu/transform/f16/resized"))
		return;
	f.j = j;
	f.trainer.dir = data_make(b, &shape);
	f.trainer.options = j->trainer.options;
	trainer_open_loader(&f.trainer);
	if (shard_loader_next_device(f.trainer.loader, j->stream, &f.batch, &why))
		bench_die("%s", why.message);
	while (f.batch.field[f.image].stride < DATA_LARGE_IMAGE_BYTES)
		f.image++;
	open_batches(&f);
	transform_row(b, &f, "gpu/transform/f16", SHARD_CROP_RANDOM, 224, SHARD_F16);
	transform_row(b, &f, "gpu/transform/f32", SHARD_CROP_RANDOM, 224, SHARD_F32);
	transform_row(b, &f, "gpu/transform/f16/resized", SHARD_CROP_RESIZED, 224, SHARD_F16);
	CUDA(cudaFree(f.batches));
	if (shard_loader_release_after(f.trainer.loader, &f.batch, j->stream, &why))
		bench_die("%s", why.message);
	trainer_close(&f.trainer);
	data_remove((char *)f.trainer.dir);
}
