/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_life.c - a loader's beginnings: the first batch, going on from a token, and the memory it
 * takes
 *
 * Going on must cost nothing, wherever the token points to.  Each run proves that what follows is
 * what would have followed, and that no record before the token was prepared: by the loader's own
 * count of the records it filled.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/cold.h"
#include "bench/common/data.h"
#include "bench/common/sparse.h"
#include "bench/common/trainer.h"

#define PHOTOS	      ((struct data_shape){"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW})
#define BATCH	      256u
#define STEPS_COMPARE 2u

#define SMALL_SHARDS  10000u
#define SMALL_RECORDS 100000u /* of each shard: 10^9 in all, so sparse that they fit any disk */
#define SMALL	      ((struct data_shape){"sparse-64", 64, SMALL_SHARDS, SMALL_RECORDS, SHARD_RAW})
#define SMALL_BATCH   4096u
#define SMALL_PLACES  50u /* of an epoch, that a job passes through; at each it takes */
#define SMALL_STEPS   4u

struct job {
	struct trainer trainer;
	char token[SHARD_TOKEN_BYTES];
	uint64_t left_count; /* records of the epoch from the token on */
	uint64_t expected[STEPS_COMPARE * BATCH], found[STEPS_COMPARE * BATCH];
	uint32_t found_steps;
	uint64_t filled_before, filled_most; /* of all runs: records prepared after resume */
	uint64_t shard_count;		     /* met by the last run */
};

/* ---- the first batch ---- */

static double run_first_batch(void *context)
{
	struct job *j = context;
	double begin = bench_seconds(), seconds;
	struct shard_batch batch;
	struct shard_error err;

	trainer_open_loader(&j->trainer);
	if (shard_loader_next(j->trainer.loader, &batch, &err))
		bench_die("%s", err.message);
	seconds = bench_seconds() - begin;
	return seconds * 1e3;
}

static bool close_all(void *context)
{
	trainer_close(&((struct job *)context)->trainer);
	return true;
}

/* ---- going on ---- */

/*
 * Walk through nine tenths of an epoch, as an uninterrupted job does, take the token, and note what
 * comes then.
 */
static void make_token(struct job *j)
{
	struct shard_order_info info;
	uint64_t epoch, position;

	trainer_open_loader(&j->trainer);
	trainer_take(&j->trainer, shard_loader_step_count(j->trainer.loader) * 9 / 10, NULL);
	shard_loader_token(j->trainer.loader, j->token);
	shard_loader_tell(j->trainer.loader, &epoch, &position);
	shard_loader_order_info(j->trainer.loader, &info);
	j->left_count = info.record_count - position;
	if (trainer_take(&j->trainer, STEPS_COMPARE, j->expected) != STEPS_COMPARE * BATCH)
		bench_die("the epoch is too short");
	trainer_close(&j->trainer);
}

static uint64_t filled(const struct job *j)
{
	struct shard_loader_stats stats;

	shard_loader_stats(j->trainer.loader, &stats);
	return stats.filled_record_count;
}

static bool open_fresh(void *context)
{
	struct job *j = context;

	trainer_open_loader(&j->trainer);
	j->filled_before = 0;
	return true;
}

/* In the midst of another place of the epoch, with its threads at work. */
static bool open_running(void *context)
{
	struct job *j = context;

	trainer_open_loader(&j->trainer);
	trainer_take(&j->trainer, 3, NULL);
	j->filled_before = filled(j);
	return true;
}

static double run_resume(void *context)
{
	struct job *j = context;
	struct shard_error err;
	double begin = bench_seconds();

	j->found_steps = 0;
	if (shard_loader_resume(j->trainer.loader, j->token, &err))
		bench_die("%s", err.message);
	return (bench_seconds() - begin) * 1e3;
}

static double run_resume_batch(void *context)
{
	struct job *j = context;
	double begin = bench_seconds();

	run_resume(context);
	trainer_take(&j->trainer, 1, j->found);
	j->found_steps = 1;
	return (bench_seconds() - begin) * 1e3;
}

/*
 * Beyond the rest of the epoch, there may only be what fits the ring: read ahead, or under way when
 * resume was called.
 */
static bool prove(void *context)
{
	struct job *j = context;
	struct trainer *t = &j->trainer;
	uint64_t records, ring_records = (uint64_t)t->options.slot_count * BATCH;

	trainer_take(t, STEPS_COMPARE - j->found_steps, j->found + j->found_steps * BATCH);
	if (memcmp(j->found, j->expected, sizeof(j->found)) != 0)
		bench_die("what follows the token is not what followed without it");
	trainer_take(t, UINT64_MAX, NULL);
	records = filled(j) - j->filled_before;
	if (records > j->left_count + 2 * ring_records)
		bench_die("%llu records were prepared, but only %llu were left: earlier ones were read",
			  (unsigned long long)records, (unsigned long long)j->left_count);
	j->filled_most = records > j->filled_most ? records : j->filled_most;
	trainer_close(t);
	return true;
}

static void photo_rows(struct bench *b, struct job *j)
{
	const struct bench_row row[] = {
		{.name = "loader/open/first-batch",
		 .unit = "ms",
		 .less_is_better = true,
		 .warm_up_count = 1,
		 .context = j,
		 .side = {{"open dataset and loader, next", run_first_batch, NULL, close_all, 0}}},
		{.name = "loader/resume",
		 .unit = "ms",
		 .less_is_better = true,
		 .context = j,
		 .side = {{"shard_loader_resume, nothing started", run_resume, open_fresh, prove, 0}}},
		{.name = "loader/resume/running",
		 .unit = "ms",
		 .less_is_better = true,
		 .context = j,
		 .side = {{"shard_loader_resume, threads at work", run_resume, open_running, prove, 0}}},
		{.name = "loader/resume/first-batch",
		 .unit = "ms",
		 .less_is_better = true,
		 .context = j,
		 .side = {{"shard_loader_resume and next", run_resume_batch, open_fresh, prove, 0}}},
	};
	bool wanted = false, hot;
	char *dir;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		wanted = wanted || bench_wants(b, row[i].name);
	if (!wanted)
		return;
	dir = data_make(b, &PHOTOS);
	hot = data_warm_dir(dir);
	j->trainer = (struct trainer){
		.dir = dir, .options = {.batch_records = BATCH, .order.seed = 1, .tail = SHARD_KEEP, .slot_count = 4}};
	make_token(j);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (hot)
			bench_run(b, &row[i]);
		else
			bench_skipped(b, row[i].name, bench_skip_reason());
	if (j->filled_most)
		bench_note("proof: the same records followed, and at most %llu were prepared where %llu were left in "
			   "the epoch",
			   (unsigned long long)j->filled_most, (unsigned long long)j->left_count);
	free(dir);
}

/* ---- memory ---- */

/* Anonymous memory of this process. */
static uint64_t anonymous_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu", &kib) == 1) {
			fclose(f);
			return kib << 10;
		}
	bench_die("/proc/self/status does not say how much memory is used");
}

static uint64_t count_shards(const uint64_t *idx, uint64_t count)
{
	static uint8_t met[SMALL_SHARDS];
	uint64_t n = 0;

	memset(met, 0, sizeof(met));
	for (uint64_t i = 0; i < count; i++) {
		n += !met[idx[i] / SMALL_RECORDS];
		met[idx[i] / SMALL_RECORDS] = 1;
	}
	return n;
}

/*
 * What dataset, loader and threads add, less the ring, to a job that has been everywhere in an
 * epoch.
 */
static double run_memory(void *context)
{
	struct job *j = context;
	uint64_t *idx = bench_memory((size_t)SMALL_PLACES * SMALL_STEPS * SMALL_BATCH * sizeof(*idx)), before, after,
		 ring, n = 0, steps;
	struct shard_error err;

	malloc_trim(0); /* memory that this program gave back must not be used unseen */
	before = anonymous_bytes();
	trainer_open_loader(&j->trainer);
	steps = shard_loader_step_count(j->trainer.loader);
	for (uint64_t i = 0; i < SMALL_PLACES; i++) {
		if (shard_loader_seek(j->trainer.loader, 0, steps * i / SMALL_PLACES * SMALL_BATCH, &err))
			bench_die("%s", err.message);
		n += trainer_take(&j->trainer, SMALL_STEPS, idx + n);
	}
	after = anonymous_bytes();
	ring = shard_loader_ring_bytes(j->trainer.loader);
	j->shard_count = count_shards(idx, n);
	free(idx);
	if (after < before + ring)
		bench_die("memory grew by %llu bytes, less than the ring's %llu", (unsigned long long)(after - before),
			  (unsigned long long)ring);
	return (double)(after - before - ring);
}

static void memory_rows(struct bench *b, struct job *j)
{
	static const struct {
		const char *name;
		uint32_t shuffle;
	} kind[] = {{"loader/memory/windows", SHARD_SHUFFLE_WINDOWS}, {"loader/memory/global", SHARD_SHUFFLE_GLOBAL}};
	char *dir;

	if (!bench_wants(b, kind[0].name) && !bench_wants(b, kind[1].name))
		return;
	dir = data_make_sparse(b, &SMALL, NULL, 0);
	j->trainer = (struct trainer){.dir = dir,
				      .options = {.batch_records = SMALL_BATCH, .order.seed = 1, .slot_count = 16}};
	for (int i = 0; i < 2; i++) {
		struct bench_row row = {.name = kind[i].name,
					.unit = "bytes",
					.less_is_better = true,
					.context = j,
					.side = {{"RssAnon, less the ring", run_memory, NULL, close_all, 0}}};

		j->trainer.options.order.shuffle = kind[i].shuffle;
		if (bench_run(b, &row) > 0)
			bench_note("%llu of %u shards were read from", (unsigned long long)j->shard_count,
				   SMALL_SHARDS);
	}
	data_remove(dir);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	static struct job j;

	photo_rows(b, &j);
	memory_rows(b, &j);
	return bench_close(b);
}
