/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - shard_dataset_verify against the slower of the bare XXH3 loop and the bare loops that
 * read past the page cache, by pread and by io_uring
 *
 * Hot, all bytes lie in the page cache and only hashing bounds.  Cold, none do, and each run proves
 * it: less than 1 % in memory before, and within 2 % of the files' bytes read from the device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/bound_hash.h"
#include "bench/common/bound_read.h"
#include "bench/common/bound_uring.h"
#include "bench/common/cold.h"

#define SHARD_COUNT   8
#define PIECE_BYTES   ((size_t)1 << 20) /* of a read by io_uring */
#define DEPTH_MOST    32
#define SHARD_RECORDS 1750 /* 2.1 GB in all: many times any cache, and in memory nearly everywhere */

struct job {
	char *dir;
	struct data_files files;
	const uint8_t **map; /* hot: for the whole row; cold: only while its own side runs */
	unsigned thread_count;
	struct bound_pieces pieces; /* all bytes of all files; none until a cold row is wanted */
	uint64_t device_before;
	double device_most, device_least; /* bytes read from the device in a cold run, over the files' bytes */
};

static double run_verify(void *context)
{
	struct job *j = context;
	struct shard_verify_options v = {.size = sizeof(v), .thread_count = j->thread_count};
	struct shard_verify_report report;
	struct shard_dataset *ds;
	struct shard_error err;
	double begin = bench_seconds(), seconds;

	if (shard_dataset_open(&ds, j->dir, NULL, &err) || shard_dataset_verify(ds, &v, &report, &err))
		bench_die("%s", err.message);
	seconds = bench_seconds() - begin;
	if (report.record_count != SHARD_COUNT * SHARD_RECORDS)
		bench_die("%s: only %llu records were verified", j->dir, (unsigned long long)report.record_count);
	shard_dataset_close(ds);
	return (double)report.bytes / seconds / 1e9;
}

static double run_hash(void *context)
{
	struct job *j = context;

	return bound_hash(&j->files, j->map, j->thread_count);
}

/* As verify must, with a map of its own that has seen no page yet. */
static double run_hash_fresh(void *context)
{
	struct job *j = context;
	double begin = bench_seconds(), seconds;
	const uint8_t **map = data_map(&j->files, false);

	bound_hash(&j->files, map, j->thread_count);
	seconds = bench_seconds() - begin;
	data_unmap(&j->files, map);
	return (double)(j->files.record_count * DATA_IMAGE_BYTES) / seconds / 1e9;
}

static void hot_row(struct bench *b, struct job *j, const char *name)
{
	struct bench_row row = {
		.name = name,
		.unit = "GB/s",
		.warm_up_count = 1,
		.cpu_unit = "CPU s/GB",
		.cpu_work = (double)j->files.bytes / 1e9,
		.context = j,
		.side = {{"shard_dataset_verify", run_verify, NULL, NULL, 0},
			 {"XXH3-64, mapped before", run_hash, NULL, NULL, 0},
			 {"XXH3-64, mapped anew", run_hash_fresh, NULL, NULL, 0}},
	};

	if (!bench_wants(b, name))
		return;
	if (!data_warm(&j->files)) {
		bench_skipped(b, name, bench_skip_reason());
		return;
	}
	j->map = data_map(&j->files, true);
	bench_run(b, &row);
	data_unmap(&j->files, j->map);
}

/* ---- cold ---- */

static bool make_cold(void *context)
{
	struct job *j = context;

	return data_make_cold(&j->files, &j->device_before);
}

static bool was_cold(void *context)
{
	struct job *j = context;
	double share = (double)(data_device_bytes() - j->device_before) / (double)j->files.bytes;

	j->device_least = fmin(j->device_least, share);
	j->device_most = fmax(j->device_most, share);
	return fabs(share - 1) <= 0.02 ||
	       bench_skip("the device gave %.1f %% of the bytes delivered; cold is 98 to 102", 100 * share);
}

static bool make_hot(void *context)
{
	struct job *j = context;

	if (!data_warm(&j->files))
		return false;
	j->map = data_map(&j->files, true);
	return true;
}

static bool unmap(void *context)
{
	struct job *j = context;

	data_unmap(&j->files, j->map);
	return true;
}

static double run_read_1(void *context)
{
	struct job *j = context;

	return bound_read(&j->files, (size_t)1 << 20, j->thread_count);
}

static double run_read_4(void *context)
{
	struct job *j = context;

	return bound_read(&j->files, (size_t)4 << 20, j->thread_count);
}

static double run_read_16(void *context)
{
	struct job *j = context;

	return bound_read(&j->files, (size_t)16 << 20, j->thread_count);
}

static double run_uring_8(void *context)
{
	return bound_uring(&((struct job *)context)->pieces, 8);
}

static double run_uring_32(void *context)
{
	return bound_uring(&((struct job *)context)->pieces, DEPTH_MOST);
}

static void cut_pieces(struct job *j)
{
	struct bound_pieces *p = &j->pieces;
	struct bound_piece *piece;

	if (p->piece)
		return;
	for (size_t i = 0; i < j->files.count; i++)
		p->count += (j->files.file[i].bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	p->piece = piece = calloc(p->count, sizeof(*piece));
	if (!piece)
		bench_die("out of memory");
	for (size_t i = 0; i < j->files.count; i++)
		for (uint64_t at = 0; at < j->files.file[i].bytes; at += PIECE_BYTES) {
			uint64_t rest = j->files.file[i].bytes - at;

			*piece++ = (struct bound_piece){at, (uint32_t)i,
							(uint32_t)(rest < PIECE_BYTES ? rest : PIECE_BYTES)};
		}
	p->files = &j->files;
	p->piece_most = PIECE_BYTES;
	p->work_bytes = j->files.bytes;
	p->ring_bytes = DEPTH_MOST * PIECE_BYTES;
	p->ring = bench_memory(p->ring_bytes);
}

static void cold_row(struct bench *b, struct job *j, const char *name)
{
	struct bench_row row = {
		.name = name,
		.unit = "GB/s",
		.cpu_unit = "CPU s/GB",
		.cpu_work = (double)j->files.bytes / 1e9,
		.context = j,
		.side = {{"shard_dataset_verify", run_verify, make_cold, was_cold, 0},
			 {"O_DIRECT, 1 MiB", run_read_1, make_cold, was_cold, 0},
			 {"O_DIRECT, 4 MiB", run_read_4, make_cold, was_cold, 0},
			 {"O_DIRECT, 16 MiB", run_read_16, make_cold, was_cold, 0},
			 {"XXH3-64, hot, mapped before", run_hash, make_hot, unmap, 1}},
	};

	if (!bench_wants(b, name))
		return;
	cut_pieces(j);
	if (bound_uring_can()) {
		row.side[5] = (struct bench_side){"io_uring O_DIRECT, depth 8", run_uring_8, make_cold, was_cold, 0};
		row.side[6] = (struct bench_side){"io_uring O_DIRECT, depth 32", run_uring_32, make_cold, was_cold, 0};
	}
	j->device_least = INFINITY;
	j->device_most = 0;
	if (bench_run(b, &row) > 0) {
		bench_note("proof: below 1 %% in memory before each run, %.1f to %.1f %% of the bytes came from the "
			   "device",
			   100 * j->device_least, 100 * j->device_most);
		if (!row.side[5].label)
			bench_note("io_uring is not permitted here, so no bound uses it");
	}
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	struct job j = {.thread_count = 1};
	bool wanted = false;

	for (unsigned t = 1; t <= 2; t++) {
		char hot[32], cold[32];

		snprintf(hot, sizeof(hot), "verify/hot/%u", t);
		snprintf(cold, sizeof(cold), "verify/cold/%u", t);
		if (!bench_wants(b, hot) && !bench_wants(b, cold))
			continue;
		if (!wanted) {
			j.dir = data_make(b, &(struct data_shape){"photos", DATA_IMAGE_BYTES, SHARD_COUNT,
								  SHARD_RECORDS, SHARD_RAW});
			data_files_open(&j.files, j.dir);
		}
		wanted = true;
		j.thread_count = t;
		hot_row(b, &j, hot);
		cold_row(b, &j, cold);
	}
	if (wanted)
		data_files_close(&j.files);
	free((void *)(uintptr_t)j.pieces.piece);
	free(j.pieces.ring);
	free(j.dir);
	return bench_close(b);
}
