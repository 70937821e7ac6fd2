/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - the loader against the best bare copy loop: the same records, in the same order, into
 * a ring as large
 *
 * The records lie in the page cache, and the ring is more than four times the last-level cache, so
 * no side lives in caches.  The job that takes the batches holds back as many as make four times
 * the cache, for a loader that can choose among free slots would otherwise choose the one that it
 * wrote last.
 *
 * A run is an epoch of a new loader, whose ring is memory that the bounds write to as well.  The
 * dataset stays open but for the rows `first`: what a loader checks when it first delivers a unit,
 * the dataset remembers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/bound_copy.h"
#include "bench/common/cold.h"
#include "bench/common/trainer.h"

#define THREADS_MOST 2u
#define SEED	     1

/*
 * Batches of some 1 MiB and more, as a trainer has; of small records some thousands, for each batch
 * costs a wake-up.
 */
static const struct size {
	struct data_shape shape;
	uint32_t batch_records;
	bool removed; /* at the end; other benchmarks use the photos, too */
} size[] = {
	{{"records-64", 64, 8, 1 << 21, SHARD_RAW}, 16384, true},
	{{"records-4096", 4096, 8, 1 << 15, SHARD_RAW}, 256, true},
	{{"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW}, 256, false},
	{{"records-1048576", 1 << 20, 8, 128, SHARD_RAW}, 32, true},
};
#define PHOTOS 2

struct job {
	struct trainer trainer;
	struct trainer other; /* which never checks */
	struct bound_copy copy;
	struct data_files files;
	const uint8_t **map;
};

static double run_libc(void *context)
{
	struct job *j = context;

	return bound_copy(&j->copy, BOUND_COPY_LIBC, j->trainer.options.thread_count);
}

static double run_avx2(void *context)
{
	struct job *j = context;

	return bound_copy(&j->copy, BOUND_COPY_AVX2, j->trainer.options.thread_count);
}

static double run_stream(void *context)
{
	struct job *j = context;

	return bound_copy(&j->copy, BOUND_COPY_STREAM, j->trainer.options.thread_count);
}

static double run_ahead(void *context)
{
	struct job *j = context;

	return bound_copy(&j->copy, BOUND_COPY_AHEAD, j->trainer.options.thread_count);
}

static double run_epoch(const struct job *j, struct trainer *t)
{
	double begin = bench_seconds(), seconds;
	uint64_t rows = trainer_take(t, UINT64_MAX, NULL);

	seconds = bench_seconds() - begin;
	if (rows != j->copy.count)
		bench_die("the epoch had %llu of %zu records", (unsigned long long)rows, j->copy.count);
	trainer_close_loader(t); /* so that the CPU time of its threads is known */
	return (double)(rows * j->copy.record_bytes) / seconds / 1e9;
}

static double run_ours(void *context)
{
	struct job *j = context;

	return run_epoch(j, &j->trainer);
}

static double run_other(void *context)
{
	struct job *j = context;

	return run_epoch(j, &j->other);
}

static bool open_ours(void *context)
{
	trainer_open_loader(&((struct job *)context)->trainer);
	return true;
}

static bool open_other(void *context)
{
	trainer_open_loader(&((struct job *)context)->other);
	return true;
}

static bool close_ours(void *context)
{
	trainer_close(&((struct job *)context)->trainer);
	return true;
}

static bool close_other(void *context)
{
	trainer_close(&((struct job *)context)->other);
	return true;
}

/* ---- what all rows of a size share ---- */

/* Where each record of the epoch lies. */
static void plan_copies(struct job *j, const struct shard_loader *l)
{
	const uint8_t **record = calloc(j->files.record_count, sizeof(*record));
	uint64_t *idx = calloc(j->files.record_count, sizeof(*idx)), per_file = j->files.file[0].record_count;
	struct shard_error err;

	if (!record || !idx)
		bench_die("out of memory");
	if (shard_loader_order(l, 0, 0, j->files.record_count, NULL, idx, &err))
		bench_die("%s", err.message);
	for (size_t i = 0; i < j->files.record_count; i++)
		record[i] = j->map[idx[i] / per_file] + j->files.file[idx[i] / per_file].record_offset +
			    idx[i] % per_file * j->files.record_bytes;
	free(idx);
	j->copy.record = record;
}

static bool job_open(struct bench *b, struct job *j, const struct size *s)
{
	uint32_t kept = trainer_kept(s->batch_records * s->shape.record_bytes);

	*j = (struct job){.trainer = {.dir = data_make(b, &s->shape), .kept_count = kept}};
	data_files_open(&j->files, j->trainer.dir);
	if (!data_warm(&j->files))
		return false;
	j->map = data_map(&j->files, true);
	j->trainer.options = (struct shard_loader_options){
		.batch_records = s->batch_records,
		.order.seed = SEED,
		.tail = SHARD_KEEP,
		.thread_count = 1,
		.slot_count = kept + 2 + THREADS_MOST, /* lent, ready, and one for each thread */
	};
	trainer_open_loader(&j->trainer);
	plan_copies(j, j->trainer.loader);
	j->trainer.memory_bytes = shard_loader_ring_bytes(j->trainer.loader);
	trainer_close(&j->trainer);
	j->trainer.memory = bench_memory(j->trainer.memory_bytes);
	j->copy.count = j->files.record_count;
	j->copy.record_bytes = s->shape.record_bytes;
	j->copy.batch_records = s->batch_records;
	j->copy.ring = j->trainer.memory;
	j->copy.ring_records = (size_t)j->trainer.options.slot_count * s->batch_records;
	j->other = j->trainer;
	j->other.check = SHARD_CHECK_NEVER;
	return true;
}

static void job_close(struct job *j, const struct size *s)
{
	trainer_close(&j->trainer);
	trainer_close(&j->other);
	data_unmap(&j->files, j->map);
	data_files_close(&j->files);
	free(j->trainer.memory);
	free((void *)(uintptr_t)j->copy.record);
	if (s->removed)
		data_remove((char *)(uintptr_t)j->trainer.dir);
	else
		free((char *)(uintptr_t)j->trainer.dir);
}

/* ---- rows ---- */

static void hot_row(struct bench *b, struct job *j, const char *name)
{
	struct bench_row row = {.name = name,
				.unit = "GB/s",
				.warm_up_count = 1,
				.cpu_unit = "CPU s/GB",
				.cpu_work = (double)(j->copy.count * j->copy.record_bytes) / 1e9,
				.context = j,
				.side = {{"shard_loader_next", run_ours, open_ours, NULL, 0},
					 {"libc memcpy", run_libc, NULL, NULL, 0}}};
	char records[112];
	double gbs;

	if (bound_copy_can(BOUND_COPY_STREAM)) {
		row.side[2] = (struct bench_side){"AVX2", run_avx2, NULL, NULL, 0};
		row.side[3] = (struct bench_side){"AVX2, non-temporal", run_stream, NULL, NULL, 0};
		row.side[4] = (struct bench_side){"AVX2, non-temporal, prefetching 16 ahead", run_ahead, NULL, NULL, 0};
	}
	gbs = bench_run(b, &row);
	snprintf(records, sizeof(records), "%s/records", name);
	if (gbs > 0 && j->copy.record_bytes == 64)
		bench_figure(b, records, "million/s", gbs * 1e3 / (double)j->copy.record_bytes);
}

/*
 * What it costs to hash each record at first, and nothing later: the same loader on a dataset that
 * never checks.
 */
static void check_rows(struct bench *b, struct job *j)
{
	struct bench_row row = {.name = "loader/first/150528",
				.unit = "GB/s",
				.cpu_unit = "CPU s/GB",
				.cpu_work = (double)(j->copy.count * j->copy.record_bytes) / 1e9,
				.context = j,
				.side = {{"first epoch, each record hashed", run_ours, open_ours, close_ours, 0},
					 {"first epoch, SHARD_CHECK_NEVER", run_other, open_other, close_other, 0}}};

	j->trainer.options.thread_count = 1;
	trainer_close(&j->trainer);
	bench_run(b, &row);
	row.name = "loader/later/150528";
	row.warm_up_count = 1;
	row.side[0] = (struct bench_side){"later epochs", run_ours, open_ours, NULL, 0};
	row.side[1] = (struct bench_side){"later epochs, SHARD_CHECK_NEVER", run_other, open_other, NULL, 0};
	bench_run(b, &row);
}

static void size_rows(struct bench *b, const struct size *s)
{
	bool checks =
		s == &size[PHOTOS] && (bench_wants(b, "loader/first/150528") || bench_wants(b, "loader/later/150528"));
	bool wanted = checks, hot;
	char name[THREADS_MOST][48];
	struct job j;

	for (unsigned t = 0; t < THREADS_MOST; t++) {
		snprintf(name[t], sizeof(name[t]), "loader/hot/%llu/%u", (unsigned long long)s->shape.record_bytes,
			 t + 1);
		wanted = wanted || bench_wants(b, name[t]);
	}
	if (!wanted)
		return;
	hot = job_open(b, &j, s);
	for (unsigned t = 0; t < THREADS_MOST; t++) {
		j.trainer.options.thread_count = t + 1;
		if (hot && bench_wants(b, name[t]))
			hot_row(b, &j, name[t]);
		else
			bench_skipped(b, name[t], bench_skip_reason());
	}
	if (hot && checks)
		check_rows(b, &j);
	for (unsigned i = 0; !hot && checks && i < 2; i++)
		bench_skipped(b, i ? "loader/later/150528" : "loader/first/150528", bench_skip_reason());
	job_close(&j, s);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);

	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++)
		size_rows(b, &size[i]);
	return bench_close(b);
}
