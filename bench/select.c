/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.c - what it costs to select by value, and to train on a tenth of a dataset
 *
 * A tenth of the photos would fit a large cache.  So a run takes all ten tenths, one after the
 * other, and the bound takes the whole dataset: the same bytes.  Opening a loader is not timed.
 */
#include <stdlib.h>

#include "bench/common/cold.h"
#include "bench/common/column.h"
#include "bench/common/trainer.h"
#include "shard.h"

#define MANY   UINT64_C(10000000)
#define PHOTOS ((struct data_shape){"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW})
#define BATCH  64u
#define PARTS  10u

struct job {
	struct trainer trainer;
	struct shard_selection *part[PARTS];
};

static double run_where(void *context)
{
	static const int64_t value = 7;
	struct job *j = context;
	struct shard_selection *s;
	struct shard_selection_info info;
	struct shard_error err;
	double begin = bench_seconds(), seconds;

	if (shard_select_where(&s, j->trainer.ds, NULL, "x", &value, 1, &err))
		bench_die("%s", err.message);
	seconds = bench_seconds() - begin;
	shard_selection_info(s, &info);
	if (info.record_count != (MANY - 8) / 251 + 1)
		bench_die("%llu records were selected", (unsigned long long)info.record_count);
	shard_selection_close(s);
	return seconds;
}

static bool open_dataset(void *context)
{
	trainer_open_dataset(&((struct job *)context)->trainer);
	return true;
}

static bool close_dataset(void *context)
{
	trainer_close(&((struct job *)context)->trainer);
	return true;
}

static void where_row(struct bench *b, struct job *j)
{
	struct bench_row row = {.name = "select/where/10000000",
				.unit = "s",
				.less_is_better = true,
				.warm_up_count = 1,
				.context = j,
				.side = {{"shard_select_where", run_where, open_dataset, close_dataset, 0}}};
	char *dir;

	if (!bench_wants(b, row.name))
		return;
	dir = data_make_column(b, "labels", SHARD_I64, MANY);
	j->trainer = (struct trainer){.dir = dir};
	bench_run(b, &row);
	data_remove(dir);
}

/* ---- tenths ---- */

/* An epoch of the records that `s` selects; NULL: of all.  Returns seconds. */
static double take_epoch(struct job *j, const struct shard_selection *s, uint64_t *rows)
{
	double begin, seconds;

	j->trainer.options.selection = s;
	trainer_open_loader(&j->trainer);
	begin = bench_seconds();
	*rows += trainer_take(&j->trainer, UINT64_MAX, NULL);
	seconds = bench_seconds() - begin;
	trainer_close_loader(&j->trainer);
	return seconds;
}

static double rate(uint64_t rows, double seconds)
{
	if (rows != PHOTOS.shard_count * PHOTOS.shard_records)
		bench_die("%llu records came", (unsigned long long)rows);
	return (double)(rows * DATA_IMAGE_BYTES) / seconds / 1e9;
}

static double run_tenths(void *context)
{
	struct job *j = context;
	double seconds = 0;
	uint64_t rows = 0;

	for (unsigned i = 0; i < PARTS; i++)
		seconds += take_epoch(j, j->part[i], &rows);
	return rate(rows, seconds);
}

static double run_whole(void *context)
{
	uint64_t rows = 0;
	double seconds = take_epoch(context, NULL, &rows);

	return rate(rows, seconds);
}

static void tenth_row(struct bench *b, struct job *j)
{
	struct bench_row row = {.name = "select/tenth/150528",
				.unit = "GB/s",
				.warm_up_count = 1,
				.context = j,
				.side = {{"ten random tenths", run_tenths, NULL, NULL, 0},
					 {"the whole dataset", run_whole, NULL, NULL, 0}}};
	struct shard_error err;
	char *dir;

	if (!bench_wants(b, row.name))
		return;
	dir = data_make(b, &PHOTOS);
	if (!data_warm_dir(dir)) {
		bench_skipped(b, row.name, bench_skip_reason());
		free(dir);
		return;
	}
	j->trainer = (struct trainer){.dir = dir,
				      .kept_count = trainer_kept(BATCH * DATA_IMAGE_BYTES),
				      .options = {.batch_records = BATCH, .tail = SHARD_KEEP, .thread_count = 1}};
	j->trainer.options.slot_count = j->trainer.kept_count + 3;
	trainer_open_loader(&j->trainer);
	j->trainer.memory_bytes = shard_loader_ring_bytes(j->trainer.loader);
	j->trainer.memory = bench_memory(j->trainer.memory_bytes);
	trainer_close_loader(&j->trainer);
	for (unsigned i = 0; i < PARTS; i++)
		if (shard_select_fold(&j->part[i], j->trainer.ds, NULL, i, PARTS, SHARD_FOLD_PART, 1, &err))
			bench_die("%s", err.message);
	bench_run(b, &row);
	for (unsigned i = 0; i < PARTS; i++)
		shard_selection_close(j->part[i]);
	trainer_close(&j->trainer);
	free(j->trainer.memory);
	free(dir);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	static struct job j;

	where_row(b, &j);
	tenth_row(b, &j);
	return bench_close(b);
}
