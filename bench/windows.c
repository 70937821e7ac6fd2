/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.c - windows of 16 neighbouring records, against records that are as long as such a window
 *
 * Both come from a loader in host memory, by one thread, in a global order and in batches of 2 MiB,
 * into a ring of as many as a loader has by default, which lies in the last-level cache of either side.
 * The files are in the page cache, and all units were hashed before.  A run takes as many bytes as
 * the dataset has.  For windows that is a sixteenth of an epoch, because each record is in 16 of them.
 */
#include <stdio.h>

#include "bench/common/cold.h"
#include "bench/common/trainer.h"

#define ROWS		16u
#define BATCH_BYTES	(UINT64_C(2) << 20)
#define DATA_BYTES	(UINT64_C(1) << 30)
#define EPISODE_RECORDS 1000u

static const uint64_t sizes[] = {64, 128, 256, 4096, 65536};

struct side {
	struct trainer trainer;
	struct shard_episodes *episodes; /* NULL: a record is as long as a window */
};

struct job {
	struct side windows, records;
};

/* Batches of a new loader, which begins another epoch each time. */
static double take(struct side *s)
{
	double begin = bench_seconds(), seconds;
	uint64_t rows = trainer_take(&s->trainer, DATA_BYTES / BATCH_BYTES, NULL);

	seconds = bench_seconds() - begin;
	if (rows != DATA_BYTES / BATCH_BYTES * s->trainer.options.batch_records * (s->episodes ? ROWS : 1))
		bench_die("%llu rows came", (unsigned long long)rows);
	trainer_close_loader(&s->trainer); /* so that the CPU time of its threads is known */
	return (double)DATA_BYTES / seconds / 1e9;
}

static double run_windows(void *context)
{
	return take(&((struct job *)context)->windows);
}

static double run_records(void *context)
{
	return take(&((struct job *)context)->records);
}

static bool open_windows(void *context)
{
	trainer_open_loader(&((struct job *)context)->windows.trainer);
	return true;
}

static bool open_records(void *context)
{
	trainer_open_loader(&((struct job *)context)->records.trainer);
	return true;
}

/* ---- a row ---- */

/* Bring the files to memory, and hash each unit.  Returns false if they do not stay there. */
static bool warm(struct trainer *t)
{
	bool hot = data_warm_dir(t->dir);

	trainer_open_loader(t);
	if (hot)
		trainer_take(t, UINT64_MAX, NULL);
	trainer_close_loader(t);
	return hot;
}

static bool side_open(struct bench *b, struct side *s, const char *name, uint64_t record_bytes, bool windows)
{
	static const int32_t offset[ROWS] = {-15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0};
	struct data_shape shape = {name, record_bytes, 1, DATA_BYTES / record_bytes, SHARD_RAW};
	struct shard_error err;

	*s = (struct side){.trainer = {.dir = data_make_episodes(b, &shape, windows ? EPISODE_RECORDS : 0)}};
	s->trainer.options = (struct shard_loader_options){.batch_records = (uint32_t)(BATCH_BYTES / record_bytes),
							   .fields = 1,
							   .order.shuffle = SHARD_SHUFFLE_GLOBAL,
							   .order.seed = 1,
							   .thread_count = 1};
	if (!warm(&s->trainer))
		return false;
	if (windows) {
		if (shard_episodes_open(&s->episodes, s->trainer.ds, "episode", &err))
			bench_die("%s", err.message);
		s->trainer.options.window = (struct shard_loader_window){s->episodes, offset, ROWS, 0};
		s->trainer.options.batch_records /= ROWS;
	}
	return true;
}

static void side_close(struct side *s)
{
	trainer_close(&s->trainer);
	shard_episodes_close(s->episodes);
	data_remove((char *)(uintptr_t)s->trainer.dir);
}

static void size_row(struct bench *b, uint64_t record_bytes)
{
	struct job j = {.windows.trainer.dir = NULL};
	char name[32];
	struct bench_row row = {.name = name,
				.unit = "GB/s",
				.warm_up_count = 1,
				.cpu_unit = "CPU s/GB",
				.cpu_work = (double)DATA_BYTES / 1e9,
				.context = &j,
				.side = {{"windows of 16 records", run_windows, open_windows, NULL, 0},
					 {"records as long as that", run_records, open_records, NULL, 0}}};
	bool hot;

	snprintf(name, sizeof(name), "windows/%llu", (unsigned long long)record_bytes);
	if (!bench_wants(b, name))
		return;
	hot = side_open(b, &j.windows, "windows", record_bytes, true);
	hot = side_open(b, &j.records, "windows-records", record_bytes * ROWS, false) && hot;
	if (hot)
		bench_run(b, &row);
	else
		bench_skipped(b, name, bench_skip_reason());
	side_close(&j.windows);
	side_close(&j.records);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		size_row(b, sizes[i]);
	return bench_close(b);
}
