/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.c - images per second of a loader that transforms them, beside torchvision's v2
 * transforms of Pillow images
 *
 * Parts of random area and ratio of 256 x 256 pixels become 224 x 224, half of them mirrored; as
 * floats they are normalised.  The images are in the page cache.  One thread of ours is compared
 * with one of PyTorch, two of ours with twice one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/bench.h"
#include "bench/common/data.h"
#include "bench/common/trainer.h"
#include "shard_transform.h"

#define RECORDS	      2048u
#define BATCH	      128u
#define THEIRS_ROUNDS 400

struct job {
	struct trainer trainer;
	struct shard_transform_options to;
	struct shard_loader_transform own;
	const char *python, *dtype;
};

static double run(struct job *j, uint32_t threads)
{
	double begin, seconds;
	uint64_t rows;

	j->trainer.options.thread_count = threads;
	trainer_open_loader(&j->trainer);
	trainer_take(&j->trainer, UINT64_MAX, NULL); /* an epoch that checks hashes, and makes the ring */
	begin = bench_seconds();
	rows = trainer_take(&j->trainer, UINT64_MAX, NULL);
	rows += trainer_take(&j->trainer, UINT64_MAX, NULL);
	seconds = bench_seconds() - begin;
	trainer_close_loader(&j->trainer);
	return (double)rows / seconds;
}

static double run_1(void *context)
{
	return run(context, 1);
}

static double run_2(void *context)
{
	return run(context, 2);
}

static double run_twice_1(void *context)
{
	return 2 * run(context, 1);
}

static double run_v2(void *context)
{
	struct job *j = context;
	char command[512], line[64] = "";
	FILE *f;

	snprintf(command, sizeof(command), "'%s' bench/v2_transform.py %s %d", j->python, j->dtype, THEIRS_ROUNDS);
	f = popen(command, "r");
	if (!f || !fgets(line, sizeof(line), f) || pclose(f))
		bench_die("%s: failed", command);
	return strtod(line, NULL);
}

static bool has_torchvision(const char *python)
{
	char command[512];

	snprintf(command, sizeof(command), "'%s' -c 'import torchvision.transforms.v2' 2>/dev/null",
		 python ? python : "false");
	return python && *python && !system(command);
}

static void set_transform(struct job *j, uint32_t dtype)
{
	j->to = (struct shard_transform_options){.size = sizeof(j->to),
						 .height = 224,
						 .width = 224,
						 .dtype = dtype,
						 .layout = SHARD_CHW,
						 .crop = SHARD_CROP_RESIZED,
						 .pixels = SHARD_PIXELS_PILLOW_13,
						 .flip = 0.5};
	if (dtype != SHARD_U8) {
		memcpy(j->to.mean, (const float[]){0.485f, 0.456f, 0.406f}, 3 * sizeof(float));
		memcpy(j->to.std, (const float[]){0.229f, 0.224f, 0.225f}, 3 * sizeof(float));
	}
	j->own = (struct shard_loader_transform){.size = sizeof(j->own), .field = "image", .options = &j->to};
}

static void dtype_rows(struct bench *b, struct job *j, bool has_v2)
{
	char one[64], two[64];
	struct bench_row row = {.unit = "images/s", .name = one, .context = j};

	snprintf(one, sizeof(one), "transform/%s/1", j->dtype);
	snprintf(two, sizeof(two), "transform/%s/2", j->dtype);
	row.side[0] = (struct bench_side){"shard_loader_next, 1 thread", run_1, NULL, NULL, 0};
	row.side[1] = (struct bench_side){"torchvision v2 of Pillow images, 1 thread", run_v2, NULL, NULL, 0};
	if (has_v2)
		bench_run(b, &row);
	else if (bench_wants(b, one))
		bench_skipped(b, one, "no Python with torchvision; PYTHON=/path/to/python names one");
	row.name = two;
	row.side[0] = (struct bench_side){"shard_loader_next, 2 threads", run_2, NULL, NULL, 0};
	row.side[1] = (struct bench_side){"twice that of 1 thread", run_twice_1, NULL, NULL, 0};
	bench_run(b, &row);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint32_t dtype;
	} dtypes[] = {{"f32", SHARD_F32}, {"f16", SHARD_F16}, {"u8", SHARD_U8}};
	const struct data_shape shape = {"photos-256", DATA_LARGE_IMAGE_BYTES, 1, RECORDS, SHARD_RAW};
	struct bench *b = bench_open(argc, argv);
	struct job j = {.python = getenv("PYTHON")};
	bool wants_one = false, wants_two = false, has_v2;
	char name[64];

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		snprintf(name, sizeof(name), "transform/%s/1", dtypes[i].name);
		wants_one |= bench_wants(b, name);
		snprintf(name, sizeof(name), "transform/%s/2", dtypes[i].name);
		wants_two |= bench_wants(b, name);
	}
	if (!wants_one && !wants_two)
		return bench_close(b);
	has_v2 = wants_one && has_torchvision(j.python);
	j.trainer.dir = data_make(b, &shape);
	j.trainer.options = (struct shard_loader_options){
		.batch_records = BATCH, .order.seed = 1, .slot_count = 4, .tail = SHARD_KEEP, .transform = &j.own};
	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		j.dtype = dtypes[i].name;
		set_transform(&j, dtypes[i].dtype);
		dtype_rows(b, &j, has_v2);
	}
	trainer_close(&j.trainer);
	data_remove((char *)j.trainer.dir);
	return bench_close(b);
}
