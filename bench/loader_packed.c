/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_packed.c - the loader on compressed records, against the bare loop that decodes each chunk
 * once
 *
 * As in loader.c: the files lie in the page cache, the ring is larger than four times the
 * last-level cache, the dataset stays open, so nothing is hashed any more, and the bounds write to
 * the same ring.
 *
 * The bounds decode into memory that they have had all along, and so does a loader behind its first
 * two windows.  A run is an epoch of a loader that is so far: it is sent to the start of the epoch
 * when time begins, with nothing prepared.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/bound_chunks.h"
#include "bench/common/bound_copy.h"
#include "bench/common/cold.h"
#include "bench/common/trainer.h"
#include "shard_inspect.h"

#define THREADS_MOST   2u
#define WINDOW_RUNS    8u /* per lane: several windows also in a dataset of 1 GB */
#define EPOCH	       1u
#define SECTION_CHUNKS 3u /* format/SHARD.md 2.3 and 2.4 */
#define ENTRY_BYTES    32u

static const struct data_shape shape = {"records-4096-lz4", 4096, 8, 1 << 15, SHARD_LZ4};

struct job {
	struct trainer trainer;
	struct data_files files;
	const uint8_t **map;
	const uint8_t **index; /* [file] its table of chunks */
	uint64_t chunk_records;
	struct bound_chunks bound;
	uint64_t decoded_before, decoded_chunk_count; /* by our last run: until it began, and then */
};

static double run_bound(const struct job *j, enum bound_copy_how how)
{
	return bound_chunks(&j->bound, how, j->trainer.options.thread_count);
}

static double run_libc(void *context)
{
	return run_bound(context, BOUND_COPY_LIBC);
}

static double run_avx2(void *context)
{
	return run_bound(context, BOUND_COPY_AVX2);
}

static double run_stream(void *context)
{
	return run_bound(context, BOUND_COPY_STREAM);
}

static double run_ours(void *context)
{
	struct job *j = context;
	double begin = bench_seconds(), seconds;
	struct shard_loader_stats stats;
	struct shard_error err;
	uint64_t rows;

	if (shard_loader_seek(j->trainer.loader, EPOCH, 0, &err))
		bench_die("%s", err.message);
	rows = trainer_take(&j->trainer, UINT64_MAX, NULL);
	seconds = bench_seconds() - begin;
	if (rows != j->bound.copy.count)
		bench_die("the epoch had %llu of %zu records", (unsigned long long)rows, j->bound.copy.count);
	shard_loader_stats(j->trainer.loader, &stats);
	j->decoded_chunk_count = stats.decoded_chunk_count - j->decoded_before;
	trainer_close_loader(&j->trainer); /* so that the CPU time of its threads is known */
	return (double)(rows * j->bound.copy.record_bytes) / seconds / 1e9;
}

static bool warm_up(void *context)
{
	struct job *j = context;
	struct shard_loader_stats stats;

	trainer_open_loader(&j->trainer);
	trainer_take(&j->trainer, 2 * j->bound.window[1].first_record / j->bound.copy.batch_records, NULL);
	shard_loader_stats(j->trainer.loader, &stats);
	j->decoded_before = stats.decoded_chunk_count;
	return true;
}

/* ---- what the bounds do ---- */

static uint64_t load(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes-- > 0)
		v = v << 8 | p[bytes];
	return v;
}

static void find_indexes(struct job *j)
{
	struct shard_section section;
	struct shard_reader *r;
	struct shard_error err;

	j->index = calloc(j->files.count, sizeof(*j->index));
	if (!j->index)
		bench_die("out of memory");
	for (size_t i = 0; i < j->files.count; i++) {
		if (shard_dataset_reader(j->trainer.ds, i, &r, &err))
			bench_die("%s", err.message);
		for (uint32_t s = 0; !shard_reader_section(r, s, &section, &err); s++)
			if (section.type == SECTION_CHUNKS)
				j->index[i] = j->map[i] + section.offset;
		if (!j->index[i])
			bench_die("%s has no chunks", j->files.file[i].path);
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * The chunks of one window's records, and where each record lies once they are decoded.  Returns
 * how many those are.
 */
static size_t plan_window(struct job *j, const uint64_t *idx, size_t count, struct bound_chunk *chunk,
			  const uint8_t **record, uint8_t *memory)
{
	uint64_t *sorted = calloc(count, sizeof(*sorted)), per_file = j->files.file[0].record_count, n = 0;

	if (!sorted)
		bench_die("out of memory");
	for (size_t i = 0; i < count; i++)
		sorted[i] = idx[i] / j->chunk_records;
	qsort(sorted, count, sizeof(*sorted), by_value);
	for (size_t i = 0; i < count; i++) {
		uint64_t file = sorted[i] * j->chunk_records / per_file,
			 inside = sorted[i] % (per_file / j->chunk_records);
		const uint8_t *entry = j->index[file] + inside * ENTRY_BYTES;

		if (n && sorted[n - 1] == sorted[i])
			continue;
		chunk[n] = (struct bound_chunk){j->map[file] + load(entry, 8), memory + n * j->bound.chunk_bytes,
						(uint32_t)load(entry + 8, 4), (uint32_t)load(entry + 12, 4)};
		sorted[n++] = sorted[i];
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t want = idx[i] / j->chunk_records,
			 *found = bsearch(&want, sorted, n, sizeof(*sorted), by_value);

		record[i] = chunk[found - sorted].decoded + idx[i] % j->chunk_records * j->bound.copy.record_bytes;
	}
	free(sorted);
	return n;
}

/*
 * All windows are of one size here: runs divide the records, lanes the runs, and windows the runs
 * of a lane.
 */
static void plan_bound(struct job *j)
{
	struct bound_chunks *b = &j->bound;
	size_t count = j->files.record_count, chunks = 0, window_records;
	uint64_t *idx = calloc(count, sizeof(*idx));
	const uint8_t **record = calloc(count, sizeof(*record));
	struct bound_chunk *chunk = calloc(count / j->chunk_records, sizeof(*chunk));
	struct bound_window *window;
	struct shard_order_info o;
	struct shard_error err;
	uint8_t *memory;

	shard_loader_order_info(j->trainer.loader, &o);
	window_records = (size_t)(o.run_records * o.window_runs * o.lane_count);
	if (count % window_records || j->files.file[0].record_count % j->chunk_records)
		bench_die("%zu records are not whole windows of %zu", count, window_records);
	b->window_count = count / window_records;
	window = calloc(b->window_count + 1, sizeof(*window));
	if (!idx || !record || !chunk || !window)
		bench_die("out of memory");
	if (shard_loader_order(j->trainer.loader, EPOCH, 0, count, NULL, idx, &err))
		bench_die("%s", err.message);
	memory = bench_memory(window_records * b->copy.record_bytes);
	for (size_t w = 0; w < b->window_count; w++) {
		chunks += plan_window(j, idx + w * window_records, window_records, chunk + chunks,
				      record + w * window_records, memory);
		window[w + 1] = (struct bound_window){chunks, (w + 1) * window_records};
	}
	free(idx);
	b->chunk = chunk;
	b->window = window;
	b->copy.record = record;
}

static bool job_open(struct bench *b, struct job *j)
{
	uint32_t batch_records = 256, kept = trainer_kept(batch_records * shape.record_bytes);

	*j = (struct job){.trainer = {.dir = data_make(b, &shape), .kept_count = kept}};
	data_files_open(&j->files, j->trainer.dir);
	if (!data_warm(&j->files))
		return false;
	j->map = data_map(&j->files, true);
	j->trainer.options = (struct shard_loader_options){
		.batch_records = batch_records,
		.order.seed = 1,
		.tail = SHARD_KEEP,
		.order.window_runs = WINDOW_RUNS,
		.slot_count = kept + 2 + THREADS_MOST, /* lent, ready, and one for each thread */
	};
	trainer_open_loader(&j->trainer);
	find_indexes(j);
	j->chunk_records = shard_dataset_schema(j->trainer.ds)->group[0].chunk_records;
	j->bound.chunk_bytes = j->chunk_records * shape.record_bytes;
	j->trainer.memory_bytes = shard_loader_ring_bytes(j->trainer.loader);
	j->bound.copy = (struct bound_copy){.count = j->files.record_count,
					    .record_bytes = shape.record_bytes,
					    .batch_records = batch_records,
					    .ring_records = (size_t)j->trainer.options.slot_count * batch_records};
	plan_bound(j);
	trainer_close(&j->trainer);
	j->trainer.memory = j->bound.copy.ring = bench_memory(j->trainer.memory_bytes);
	return true;
}

static void job_close(struct job *j)
{
	trainer_close(&j->trainer);
	if (j->bound.chunk)
		free(j->bound.chunk[0].decoded); /* the first of a window: where its memory begins */
	free((void *)(uintptr_t)j->bound.chunk);
	free((void *)(uintptr_t)j->bound.window);
	free((void *)(uintptr_t)j->bound.copy.record);
	free((void *)(uintptr_t)j->index);
	if (j->map)
		data_unmap(&j->files, j->map);
	data_files_close(&j->files);
	free(j->trainer.memory);
	data_remove((char *)(uintptr_t)j->trainer.dir);
}

static void packed_row(struct bench *b, struct job *j, const char *name)
{
	struct bench_row row = {.name = name,
				.unit = "GB/s",
				.warm_up_count = 1,
				.cpu_unit = "CPU s/GB",
				.cpu_work = (double)(j->bound.copy.count * j->bound.copy.record_bytes) / 1e9,
				.context = j,
				.side = {{"shard_loader_next", run_ours, warm_up, NULL, 0},
					 {"decode, libc memcpy", run_libc, NULL, NULL, 0}}};

	if (bound_copy_can(BOUND_COPY_STREAM)) {
		row.side[2] = (struct bench_side){"decode, AVX2", run_avx2, NULL, NULL, 0};
		row.side[3] = (struct bench_side){"decode, AVX2 non-temporal", run_stream, NULL, NULL, 0};
	}
	if (bench_run(b, &row) > 0)
		bench_note("%llu chunks were decoded for the %llu of an epoch; some were there before, and some are of "
			   "the next one",
			   (unsigned long long)j->decoded_chunk_count,
			   (unsigned long long)(j->bound.copy.count / j->chunk_records));
}

int main(int argc, char **argv)
{
	static const char *const name[THREADS_MOST] = {"loader/lz4/4096/1", "loader/lz4/4096/2"};
	struct bench *b = bench_open(argc, argv);
	struct job j;
	bool hot;

	if (!bench_wants(b, name[0]) && !bench_wants(b, name[1]))
		return bench_close(b);
	hot = job_open(b, &j);
	for (unsigned t = 0; t < THREADS_MOST; t++) {
		j.trainer.options.thread_count = t + 1;
		if (!hot)
			bench_skipped(b, name[t], bench_skip_reason());
		else if (bench_wants(b, name[t]))
			packed_row(b, &j, name[t]);
	}
	job_close(&j);
	return bench_close(b);
}
