/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - the loader against the best bare copy loop: the same photos, in the same shuffled order, into a ring as large
 *
 * The photos lie in the page cache and the ring is four times the last-level cache, so no side lives in caches.  The
 * loader's first epoch also hashes each photo; the later ones do not, and are what bare copying is compared with.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/common/bound.h"

#define SHARD_COUNT   8
#define SHARD_RECORDS 1750
#define RECORD_COUNT  (SHARD_COUNT * SHARD_RECORDS)
#define BATCH	      250 /* divides the epoch, so that both sides copy all of it */

struct job {
	char *dir;
	struct data_files files;
	const uint8_t **map;
	const uint8_t **image;
	struct bound_copy copy;
	struct shard_dataset *ds;
	struct shard_loader *loader;
	uint32_t slot_count;
	uint64_t epoch;
};

static double run_libc(void *context)
{
	return bound_copy(&((struct job *)context)->copy, BOUND_COPY_LIBC);
}

static double run_avx2(void *context)
{
	return bound_copy(&((struct job *)context)->copy, BOUND_COPY_AVX2);
}

static double run_stream(void *context)
{
	return bound_copy(&((struct job *)context)->copy, BOUND_COPY_STREAM);
}

/* One epoch, with as many batches lent at a time as there are slots: the whole ring is written in turn. */
static double run_loader(void *context)
{
	struct job *j = context;
	struct shard_batch lent[64];
	struct shard_error err;
	double begin = bench_seconds(), seconds;
	uint64_t n = 0, rows = 0;
	int rc;

	for (;; n++) {
		struct shard_batch *batch = &lent[n % j->slot_count];

		if (n >= j->slot_count && shard_loader_release(j->loader, batch, &err))
			bench_die("%s", err.message);
		rc = shard_loader_next(j->loader, batch, &err);
		if (rc)
			break;
		rows += batch->record_count;
	}
	seconds = bench_seconds() - begin;
	if (rc != SHARD_END || rows != RECORD_COUNT)
		bench_die("%s", rc < 0 ? err.message : "the epoch was too short");
	for (uint64_t i = n + 1 > j->slot_count ? n + 1 - j->slot_count : 0; i < n; i++)
		if (shard_loader_release(j->loader, &lent[i % j->slot_count], &err))
			bench_die("%s", err.message);
	return (double)(rows * DATA_IMAGE_BYTES) / seconds / 1e9;
}

static bool close_loader(void *context)
{
	struct job *j = context;

	shard_loader_close(j->loader);
	shard_dataset_close(j->ds);
	j->loader = NULL;
	j->ds = NULL;
	return true;
}

/* A fresh handle remembers no unit as checked; guard is off, as it is by default. */
static bool open_loader(void *context)
{
	struct job *j = context;
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = BATCH, .seed = 1, .slot_count = j->slot_count};
	struct shard_error err;

	if (shard_dataset_open(&j->ds, j->dir, NULL, &err) || shard_loader_open(&j->loader, j->ds, &o, &err))
		bench_die("%s", err.message);
	return true;
}

static void plan_copies(struct job *j)
{
	uint64_t *idx = calloc(RECORD_COUNT, sizeof(*idx));
	struct shard_error err;

	j->image = calloc(RECORD_COUNT, sizeof(*j->image));
	if (!idx || !j->image)
		bench_die("out of memory");
	open_loader(j);
	if (shard_loader_order(j->loader, 1, 0, RECORD_COUNT, idx, &err))
		bench_die("%s", err.message);
	close_loader(j);
	for (size_t i = 0; i < RECORD_COUNT; i++)
		j->image[i] = j->map[idx[i] / SHARD_RECORDS] + j->files.file[idx[i] / SHARD_RECORDS].image_offset +
			      idx[i] % SHARD_RECORDS * DATA_IMAGE_BYTES;
	free(idx);
	j->copy = (struct bound_copy){
		.image = j->image,
		.count = RECORD_COUNT,
		.ring = bench_memory((size_t)j->slot_count * BATCH * DATA_IMAGE_BYTES),
		.ring_images = (size_t)j->slot_count * BATCH,
	};
}

static void add_bounds(struct bench_row *row)
{
	row->side[1] = (struct bench_side){"libc memcpy", run_libc, NULL, NULL, 0};
	if (!bound_copy_can(BOUND_COPY_STREAM))
		return;
	row->side[2] = (struct bench_side){"AVX2", run_avx2, NULL, NULL, 0};
	row->side[3] = (struct bench_side){"AVX2, non-temporal", run_stream, NULL, NULL, 0};
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	struct job j = {0};
	struct bench_row row = {.name = "loader/first/150528",
				.unit = "GB/s",
				.cpu_unit = "CPU s/GB",
				.cpu_work = (double)(RECORD_COUNT * DATA_IMAGE_BYTES) / 1e9,
				.context = &j,
				.side = {{"shard_loader_next, first epoch", run_loader, open_loader, close_loader, 0}}};

	if (!bench_wants(b, row.name) && !bench_wants(b, "loader/hot/150528"))
		return bench_close(b);
	j.slot_count = (uint32_t)(4 * bench_llc_bytes() / (BATCH * DATA_IMAGE_BYTES)) + 1;
	if (j.slot_count > 64)
		j.slot_count = 64;
	j.dir = data_make_photos(b, "photos", SHARD_COUNT, SHARD_RECORDS);
	data_files_open(&j.files, j.dir);
	if (!data_warm(&j.files)) {
		bench_skipped(b, "loader/first/150528", bench_skip_reason());
		bench_skipped(b, "loader/hot/150528", bench_skip_reason());
		return bench_close(b);
	}
	j.map = data_map(&j.files, true);
	plan_copies(&j);
	add_bounds(&row);
	bench_run(b, &row);
	row.name = "loader/hot/150528";
	row.warm_up_count = 1;
	row.side[0] = (struct bench_side){"shard_loader_next, later epochs", run_loader, NULL, NULL, 0};
	open_loader(&j);
	bench_run(b, &row);
	close_loader(&j);
	data_unmap(&j.files, j.map);
	data_files_close(&j.files);
	free(j.copy.ring);
	free(j.image);
	free(j.dir);
	return bench_close(b);
}
