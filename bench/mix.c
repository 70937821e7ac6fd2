/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix.c - a mixture of 35 datasets with 1.015 x 10^9 records in all: opening it, going to a place,
 * the first batch there, and the place of a record
 *
 * The datasets are open before.  Their records are holes of zeros, so a batch reads no disk.
 * Weights are in proportion to the sizes, 4096 in all.  A run of mix/position is one block of each
 * lane, and proves that each lane has each component as often as its weight says.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/sparse.h"
#include "bench/common/trainer.h"
#include "shard.h"

#define SOURCES	      35u
#define SHARD_RECORDS UINT64_C(1000000)
#define RECORD_BYTES  64u
#define LANES	      64u
#define BATCH	      256u
#define POSITIONS     (LANES * SHARD_MIX_WEIGHTS_MAX)

struct job {
	char *dir[SOURCES];
	struct shard_mix_source source[SOURCES];
	struct shard_mix *mix;
	struct shard_loader *loader;
	uint64_t seeks, memory_bytes, *idx;
	uint16_t *component;
};

static uint64_t allocated_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static double run_open(void *context)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = BATCH, .order.seed = 1};
	struct job *j = context;
	uint64_t before = allocated_bytes();
	double begin = bench_seconds(), seconds;
	struct shard_error err;

	if (shard_mix_open(&j->mix, j->source, SOURCES, NULL, &err))
		bench_die("%s", err.message);
	o.mix = j->mix;
	if (shard_loader_open(&j->loader, NULL, &o, &err))
		bench_die("%s", err.message);
	seconds = bench_seconds() - begin;
	j->memory_bytes = allocated_bytes() - before;
	return seconds * 1e3;
}

static bool close_mix(void *context)
{
	struct job *j = context;

	shard_loader_close(j->loader);
	shard_mix_close(j->mix);
	j->loader = NULL;
	j->mix = NULL;
	return true;
}

static bool open_mix(void *context)
{
	run_open(context);
	return true;
}

/* Each time to another place, in any epoch of the first thousand. */
static double run_seek(void *context)
{
	struct job *j = context;
	double begin = bench_seconds();
	struct shard_error err;

	j->seeks++;
	if (shard_loader_seek(j->loader, j->seeks * 389 % 1000, j->seeks * UINT64_C(7368787) % 100000 * BATCH, &err))
		bench_die("%s", err.message);
	return (bench_seconds() - begin) * 1e3;
}

/* To the same place each time: but for the warm-up, shards are open and files in memory. */
static bool seek_there(void *context)
{
	((struct job *)context)->seeks = 0;
	open_mix(context);
	run_seek(context);
	return true;
}

static double run_first_batch(void *context)
{
	struct job *j = context;
	double begin = bench_seconds(), seconds;
	struct shard_batch batch;
	struct shard_error err;

	if (shard_loader_next(j->loader, &batch, &err))
		bench_die("%s", err.message);
	seconds = bench_seconds() - begin;
	if (batch.record_count != BATCH)
		bench_die("the batch has %u records", (unsigned)batch.record_count);
	return seconds * 1e3;
}

static double run_position(void *context)
{
	struct job *j = context;
	double begin = bench_seconds();
	struct shard_error err;

	if (shard_loader_order(j->loader, 0, 0, POSITIONS, j->component, j->idx, &err))
		bench_die("%s", err.message);
	return (bench_seconds() - begin) * 1e9 / POSITIONS;
}

static bool prove_weights(void *context)
{
	static uint32_t count[LANES][SOURCES];
	struct job *j = context;

	memset(count, 0, sizeof(count));
	for (uint64_t p = 0; p < POSITIONS; p++)
		count[p % LANES][j->component[p]]++;
	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned d = 0; d < SOURCES; d++) {
			struct shard_error err;
			uint32_t weight;

			if (shard_mix_component(j->mix, d, &weight, NULL, &err))
				bench_die("%s", err.message);
			if (count[lane][d] != weight)
				bench_die("lane %u has component %u %u times; its weight is %u", lane, d,
					  count[lane][d], weight);
		}
	return close_mix(context);
}

/* ---- the rows ---- */

static void open_sources(struct bench *b, struct job *j)
{
	struct shard_error err;

	for (unsigned d = 0; d < SOURCES; d++) {
		char name[32];
		struct data_shape shape = {name, RECORD_BYTES, 12 + d, SHARD_RECORDS, SHARD_RAW};

		snprintf(name, sizeof(name), "mix-%02u", d);
		j->dir[d] = data_make_sparse(b, &shape, NULL, 0);
		if (shard_dataset_open(&j->source[d].ds, j->dir[d], NULL, &err))
			bench_die("%s", err.message);
	}
	j->idx = bench_memory(POSITIONS * sizeof(*j->idx));
	j->component = bench_memory(POSITIONS * sizeof(*j->component));
}

static void close_sources(struct job *j)
{
	for (unsigned d = 0; d < SOURCES; d++) {
		shard_dataset_close(j->source[d].ds);
		data_remove(j->dir[d]);
	}
	free(j->idx);
	free(j->component);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	static struct job j;
	const struct bench_row row[] = {
		{.name = "mix/open",
		 .unit = "ms",
		 .less_is_better = true,
		 .warm_up_count = 1,
		 .context = &j,
		 .side = {{"shard_mix_open, shard_loader_open", run_open, NULL, close_mix, 0}}},
		{.name = "mix/seek",
		 .unit = "ms",
		 .less_is_better = true,
		 .context = &j,
		 .side = {{"shard_loader_seek", run_seek, open_mix, close_mix, 0}}},
		{.name = "mix/first-batch",
		 .unit = "ms",
		 .less_is_better = true,
		 .warm_up_count = 1,
		 .context = &j,
		 .side = {{"shard_loader_next", run_first_batch, seek_there, close_mix, 0}}},
		{.name = "mix/position",
		 .unit = "ns/position",
		 .less_is_better = true,
		 .context = &j,
		 .side = {{"shard_loader_order", run_position, open_mix, prove_weights, 0}}},
	};
	bool wanted = bench_wants(b, "mix/memory");

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		wanted = wanted || bench_wants(b, row[i].name);
	if (wanted) {
		open_sources(b, &j);
		for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
			bench_run(b, &row[i]);
		open_mix(&j);
		bench_figure(b, "mix/memory", "bytes", (double)j.memory_bytes);
		close_mix(&j);
		close_sources(&j);
	}
	return bench_close(b);
}
