/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_transform.cu - the transform kernel against copies within the GPU's memory
 *
 * A batch is transformed again and again, one launch behind the other, timed by events of the GPU.
 * The bytes that a launch must move are those of the pixels that it takes and of the numbers that
 * it makes; the bound is a copy from device to device that reads and writes as many together.  Both
 * touch far more memory than a GPU's cache holds.
 */
#include <string.h>

#include "bench/gpu_job.h"
#include "shard_gpu.h"

#ifndef TRANSFORM_LAUNCHES
#define TRANSFORM_LAUNCHES 50
#endif

struct transforming {
	struct job *j;
	struct shard_transform *transform;
	struct shard_batch batch;
	uint64_t moved_bytes; /* by one launch */
	char *from, *to;      /* `to`: what is transformed; both: halves of moved_bytes, to copy */
};

static double run_transform(void *context)
{
	struct transforming *f = (struct transforming *)context;
	struct job *j = f->j;
	struct shard_error why;

	CUDA(cudaEventRecord(j->begin[0], j->stream));
	for (int i = 0; i < TRANSFORM_LAUNCHES; i++)
		if (shard_transform_launch(f->transform, &f->batch, NULL, 0, j->stream, f->to, &why))
			bench_die("%s", why.message);
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
	for (int i = 0; i < TRANSFORM_LAUNCHES; i++)
		CUDA(cudaMemcpyAsync(f->to, f->from, f->moved_bytes / 2, cudaMemcpyDeviceToDevice, j->stream));
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
	if (shard_transform_open(&f->transform, f->j->trainer.loader, "image", &o, &why))
		bench_die("%s", why.message);
	out = f->batch.record_count * shard_transform_row_bytes(f->transform);
	f->moved_bytes = (f->batch.record_count * pixels + out) / 2 * 2;
	CUDA(cudaMalloc((void **)&f->to, out > f->moved_bytes / 2 ? out : f->moved_bytes / 2));
	CUDA(cudaMalloc((void **)&f->from, f->moved_bytes / 2));
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

void transform_rows(struct bench *b, struct job *j)
{
	struct transforming f = {};
	struct shard_error why;

	f.j = j;
	trainer_open_loader(&j->trainer);
	if (shard_loader_next_device(j->trainer.loader, j->stream, &f.batch, &why))
		bench_die("%s", why.message);
	transform_row(b, &f, "gpu/transform/f16", SHARD_CROP_RANDOM, 224, SHARD_F16);
	transform_row(b, &f, "gpu/transform/f16/crop-192", SHARD_CROP_RANDOM, 192, SHARD_F16);
	transform_row(b, &f, "gpu/transform/f32", SHARD_CROP_RANDOM, 224, SHARD_F32);
	transform_row(b, &f, "gpu/transform/f16/resized", SHARD_CROP_RESIZED, 224, SHARD_F16);
	if (shard_loader_release_after(j->trainer.loader, &f.batch, j->stream, &why))
		bench_die("%s", why.message);
	job_close_loader(j);
}
