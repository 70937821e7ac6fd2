/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_cold.c - the loader against bare O_DIRECT loops over the same records, none of them in the
 * page cache
 *
 * Each run is one epoch of a dataset that was opened again, and proves that it was cold: less than 1
 * % in memory before, and from the device came what was delivered, to within 2 %.  The loader may
 * have read ahead into the next epoch when the last batch is taken: as much as its ring holds, and
 * with windows one window more.  The bounds check nothing, and so neither does the loader, but in
 * the row `checked`, whose CPU time is compared with that of the loop and of XXH3 together.
 *
 * The rows `defaults` leave every choice to the loader, checks included.  They time the first
 * epoch, and then take two more: in all three together the device may give 1.05 of the dataset.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/common/bound_pieces.h"
#include "bench/common/bound_uring.h"
#include "bench/common/cold.h"
#include "bench/common/trainer.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#define PIECE_MOST   (UINT64_C(1) << 20)
#define RING_LEAST   ((size_t)64 << 20) /* of the bounds; the loader is lent the same memory */
#define HASHED_BYTES ((size_t)1 << 30)
#define HASHED_STEP  7919u /* records; a prime, so that all are met */
#define WINDOW_RUNS  8u	   /* per lane: several windows also in a dataset of 1 GB */
#define MORE_EPOCHS  2u	   /* of the rows `defaults`, behind the one that is timed */

/* Small batches, so that what is read ahead at the end of the epoch is small. */
static const struct cold {
	const char *name;
	struct data_shape shape;
	uint32_t batch_records, window_runs, check, path, threads; /* threads: 0 is the default */
	bool removed;
} cold[] = {
	{"loader/cold/150528",
	 {"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW},
	 64,
	 0,
	 SHARD_CHECK_NEVER,
	 SHARD_PATH_DIRECT,
	 0,
	 false},
	{"loader/cold/150528/1",
	 {"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW},
	 64,
	 0,
	 SHARD_CHECK_NEVER,
	 SHARD_PATH_DIRECT,
	 1,
	 false},
	{"loader/cold/150528/checked",
	 {"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW},
	 64,
	 0,
	 SHARD_CHECK_DEVICE,
	 SHARD_PATH_DIRECT,
	 0,
	 false},
	{"loader/cold/150528/auto",
	 {"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW},
	 64,
	 0,
	 SHARD_CHECK_NEVER,
	 SHARD_PATH_AUTO,
	 0,
	 false},
	{"loader/cold/1048576",
	 {"records-1048576", 1 << 20, 8, 128, SHARD_RAW},
	 8,
	 0,
	 SHARD_CHECK_NEVER,
	 SHARD_PATH_DIRECT,
	 0,
	 true},
	{"loader/cold/4096/auto",
	 {"records-4096", 4096, 8, 1 << 15, SHARD_RAW},
	 1024,
	 WINDOW_RUNS,
	 SHARD_CHECK_NEVER,
	 SHARD_PATH_AUTO,
	 0,
	 true},
	{"loader/cold/64/auto",
	 {"records-64", 64, 8, 1 << 21, SHARD_RAW},
	 16384,
	 WINDOW_RUNS,
	 SHARD_CHECK_NEVER,
	 SHARD_PATH_AUTO,
	 0,
	 true},
	{"loader/cold/150528/defaults",
	 {"photos", DATA_IMAGE_BYTES, 8, 1750, SHARD_RAW},
	 64,
	 0,
	 SHARD_CHECK_DEVICE,
	 SHARD_PATH_AUTO,
	 0,
	 false},
	{"loader/cold/4096/defaults",
	 {"records-4096", 4096, 8, 1 << 15, SHARD_RAW},
	 1024,
	 WINDOW_RUNS,
	 SHARD_CHECK_DEVICE,
	 SHARD_PATH_AUTO,
	 0,
	 true},
	{"loader/cold/64/defaults",
	 {"records-64", 64, 8, 1 << 21, SHARD_RAW},
	 16384,
	 WINDOW_RUNS,
	 SHARD_CHECK_DEVICE,
	 SHARD_PATH_AUTO,
	 0,
	 true},
};

struct job {
	struct trainer trainer;
	struct data_files files;
	struct bound_pieces pieces;
	uint64_t piece_bytes;  /* of all pieces */
	uint64_t window_bytes; /* that the loader may hold besides its ring */
	uint64_t device_before, device_bytes, expected_least, expected_most;
	uint8_t *hashed;		     /* [HASHED_BYTES] of the row `checked` */
	double ours_cpu, loop_cpu, hash_cpu; /* seconds, of all runs */
	double more_gbs, more_cpu;	     /* of the epochs behind the first one: the last run's */
	bool defaults, fills_memory;	     /* its epochs end with all records in memory */
	double share_least, share_most;	     /* of what our side was expected to read at least, all runs */
};

static double run_ours(void *context)
{
	struct job *j = context;
	double begin = bench_seconds(), cpu = bench_cpu_seconds(), seconds;
	uint64_t rows = trainer_take(&j->trainer, UINT64_MAX, NULL);

	seconds = bench_seconds() - begin;
	j->device_bytes = data_device_bytes() - j->device_before;
	if (rows != j->files.record_count)
		bench_die("the epoch had %llu of %llu records", (unsigned long long)rows,
			  (unsigned long long)j->files.record_count);
	j->expected_least = j->pieces.work_bytes;
	j->expected_most = j->pieces.work_bytes + shard_loader_ring_bytes(j->trainer.loader) + j->window_bytes;
	if (!j->defaults)
		trainer_close(&j->trainer); /* so that the CPU time of its threads is known */
	j->ours_cpu += bench_cpu_seconds() - cpu;
	j->share_least = fmin(j->share_least, (double)j->device_bytes / (double)j->expected_least);
	j->share_most = fmax(j->share_most, (double)j->device_bytes / (double)j->expected_least);
	return (double)j->pieces.work_bytes / seconds / 1e9;
}

static double bound_done(struct job *j, double gbs)
{
	j->device_bytes = data_device_bytes() - j->device_before;
	j->expected_least = j->expected_most = j->piece_bytes;
	return gbs;
}

static double run_uring_8(void *context)
{
	return bound_done(context, bound_uring(&((struct job *)context)->pieces, 8));
}

static double run_uring_32(void *context)
{
	struct job *j = context;
	double cpu = bench_cpu_seconds(), gbs = bound_uring(&j->pieces, 32);

	j->loop_cpu += bench_cpu_seconds() - cpu;
	return bound_done(j, gbs);
}

static double run_pread_1(void *context)
{
	return bound_done(context, bound_pieces(&((struct job *)context)->pieces, 1));
}

static double run_pread_8(void *context)
{
	return bound_done(context, bound_pieces(&((struct job *)context)->pieces, 8));
}

/*
 * CPU seconds of XXH3 over as many bytes as an epoch has, record by record all over more memory
 * than a cache holds, because bytes from a device are in none.  This is not a side: it does not
 * read.
 */
static double hash_cpu_seconds(const struct job *j)
{
	uint64_t record = j->files.record_bytes, fits = HASHED_BYTES / record, sum = 0;
	double begin = bench_cpu_seconds();

	for (uint64_t i = 0; i < j->files.record_count; i++)
		sum += XXH3_64bits(j->hashed + i * HASHED_STEP % fits * record, record);
	begin = bench_cpu_seconds() - begin;
	if (!sum)
		bench_die("all hashes are 0");
	return begin;
}

static bool make_cold(void *context)
{
	struct job *j = context;

	return data_make_cold(&j->files, &j->device_before);
}

static bool make_cold_and_open(void *context)
{
	struct job *j = context;

	if (!make_cold(j))
		return false;
	if (j->fills_memory)
		data_touch_free_memory(j->files.bytes + j->files.bytes / 4);
	trainer_open_loader(&j->trainer);
	return true;
}

static bool was_cold(void *context)
{
	struct job *j = context;
	double bytes = (double)j->device_bytes;

	return (bytes >= 0.98 * (double)j->expected_least && bytes <= 1.02 * (double)j->expected_most) ||
	       bench_skip("the device gave %.1f MB where %.1f to %.1f were expected; cold is within 2 %%", bytes / 1e6,
			  (double)j->expected_least / 1e6, (double)j->expected_most / 1e6);
}

/* Take the next epochs, which shall find the dataset in memory. */
static bool take_more(void *context)
{
	struct job *j = context;
	double begin = bench_seconds(), cpu = bench_cpu_seconds();
	double gb = (double)j->pieces.work_bytes * MORE_EPOCHS / 1e9;

	for (uint32_t i = 0; i < MORE_EPOCHS; i++)
		trainer_take(&j->trainer, UINT64_MAX, NULL);
	j->more_gbs = gb / (bench_seconds() - begin);
	j->more_cpu = (bench_cpu_seconds() - cpu) / gb;
	trainer_close(&j->trainer);
	j->device_bytes = data_device_bytes() - j->device_before;
	j->share_most = fmax(j->share_most, (double)j->device_bytes / (double)j->expected_least);
	return (double)j->device_bytes <= 1.05 * (double)j->expected_least ||
	       bench_skip("the device gave %.1f MB for a dataset of %.1f MB; 5 %% more are allowed",
			  (double)j->device_bytes / 1e6, (double)j->expected_least / 1e6);
}

static bool was_cold_and_hash(void *context)
{
	struct job *j = context;

	j->hash_cpu += hash_cpu_seconds(j);
	return was_cold(context);
}

/* ---- what the bounds read ---- */

static uint32_t direct_align(const char *path)
{
#ifdef STATX_DIOALIGN
	struct statx s;

	if (!statx(AT_FDCWD, path, 0, STATX_DIOALIGN, &s) && s.stx_mask & STATX_DIOALIGN && s.stx_dio_offset_align &&
	    s.stx_dio_offset_align <= 4096)
		return s.stx_dio_offset_align;
#endif
	(void)path;
	return 4096;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Positions that are mixed with each other, and may be read in any order: one window of each lane.
 */
static uint64_t block_of(const struct shard_order_info *o, uint64_t first)
{
	uint64_t lane_runs = o->lane_count ? o->record_count / o->run_records / o->lane_count : 0;
	uint64_t windows = o->window_runs ? lane_runs / o->window_runs : 0, least, longer, at = 0;

	if (o->kind != SHARD_SHUFFLE_WINDOWS)
		return 1;
	windows = windows ? windows : 1;
	least = lane_runs / windows;
	longer = lane_runs % windows;
	for (uint64_t w = 0; w < windows; w++) {
		uint64_t n = (least + (w < longer)) * o->run_records * o->lane_count;

		if (first < at + n)
			return n;
		at += n;
	}
	return o->record_count - at;
}

/* Neighbouring records of a block are one piece, as long as it is no longer than PIECE_MOST. */
static size_t cut_pieces(const struct job *j, const uint64_t *idx, uint64_t count, uint32_t align,
			 struct bound_piece *out)
{
	uint64_t per_file = j->files.file[0].record_count, bytes = j->files.record_bytes, end = UINT64_MAX;
	size_t n = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint32_t file = (uint32_t)(idx[i] / per_file);
		uint64_t begin = j->files.file[file].record_offset + idx[i] % per_file * bytes,
			 first = begin / align * align;

		if (n && out[n - 1].file == file && end == begin && begin + bytes - out[n - 1].offset <= PIECE_MOST) {
			out[n - 1].bytes = (uint32_t)((begin + bytes + align - 1) / align * align - out[n - 1].offset);
		} else {
			out[n++] = (struct bound_piece){
				first, file, (uint32_t)((begin + bytes + align - 1) / align * align - first)};
		}
		end = begin + bytes;
	}
	return n;
}

static void plan_pieces(struct job *j)
{
	uint64_t count = j->files.record_count, *idx = calloc(count, sizeof(*idx)), n;
	struct bound_piece *piece = calloc(count, sizeof(*piece));
	uint32_t align = direct_align(j->files.file[0].path);
	struct bound_pieces *p = &j->pieces;
	struct shard_order_info info;
	struct shard_error err;

	if (!idx || !piece)
		bench_die("out of memory");
	trainer_open_loader(&j->trainer);
	shard_loader_order_info(j->trainer.loader, &info);
	if (shard_loader_order(j->trainer.loader, 0, 0, count, NULL, idx, &err))
		bench_die("%s", err.message);
	p->ring_bytes = shard_loader_ring_bytes(j->trainer.loader);
	if (p->ring_bytes < RING_LEAST)
		p->ring_bytes = RING_LEAST;
	trainer_close(&j->trainer);
	for (uint64_t at = 0; at < count; at += n) {
		n = block_of(&info, at);
		if (n > 1)
			qsort(idx + at, n, sizeof(*idx), by_value);
		if (n > 1)
			j->window_bytes = n * j->files.record_bytes;
		p->count += cut_pieces(j, idx + at, n, align, piece + p->count);
	}
	free(idx);
	p->piece = piece;
	p->work_bytes = count * j->files.record_bytes;
	for (size_t i = 0; i < p->count; i++) {
		j->piece_bytes += piece[i].bytes;
		if (piece[i].bytes > p->piece_most)
			p->piece_most = (piece[i].bytes + 4095u) / 4096 * 4096;
	}
}

static bool has_defaults(const struct cold *c)
{
	return c->check == SHARD_CHECK_DEVICE && c->path == SHARD_PATH_AUTO;
}

static void cold_row(struct bench *b, const struct cold *c)
{
	struct job j = {
		.share_least = INFINITY, .defaults = has_defaults(c), .fills_memory = c->path == SHARD_PATH_AUTO};
	struct bench_row row = {.name = c->name,
				.unit = "GB/s",
				.cpu_unit = "CPU s/GB",
				.context = &j,
				.side = {{"shard_loader_next", run_ours, make_cold_and_open, was_cold, 0},
					 {"O_DIRECT pread, 1 thread", run_pread_1, make_cold, was_cold, 0},
					 {"O_DIRECT pread, 8 threads", run_pread_8, make_cold, was_cold, 0}}};

	j.trainer = (struct trainer){.dir = data_make(b, &c->shape), .check = c->check};
	j.trainer.options = (struct shard_loader_options){.batch_records = c->batch_records,
							  .order.seed = 1,
							  .tail = SHARD_KEEP,
							  .slot_count = 4,
							  .order.window_runs = c->window_runs,
							  .path = c->path,
							  .thread_count = c->threads};
	data_files_open(&j.files, j.trainer.dir);
	plan_pieces(&j);
	j.pieces.files = &j.files;
	j.pieces.ring = bench_memory(j.pieces.ring_bytes);
	j.trainer.memory = j.pieces.ring;
	j.trainer.memory_bytes = j.pieces.ring_bytes;
	row.cpu_work = (double)j.pieces.work_bytes / 1e9;
	if (bound_uring_can()) {
		row.side[3] = (struct bench_side){"io_uring O_DIRECT, depth 8", run_uring_8, make_cold, was_cold, 0};
		row.side[4] = (struct bench_side){"io_uring O_DIRECT, depth 32", run_uring_32, make_cold, was_cold, 0};
	}
	if (has_defaults(c))
		row.side[0].after = take_more;
	else if (c->check == SHARD_CHECK_DEVICE) {
		j.hashed = bench_memory(HASHED_BYTES);
		bench_random_fill(j.hashed, HASHED_BYTES, 1);
		row.side[0].after = was_cold_and_hash;
	}
	if (bench_run(b, &row) > 0) {
		if (has_defaults(c))
			bench_note("the two epochs behind it: %.2f GB/s, %.3f CPU s/GB", j.more_gbs, j.more_cpu);
		else if (c->check == SHARD_CHECK_DEVICE && row.side[3].label)
			bench_figure(b, "loader/cold/150528/checked/hash", "x XXH3",
				     (j.ours_cpu - j.loop_cpu) / j.hash_cpu);
		bench_note("proof: below 1 %% in memory before each run, the device gave %.1f to %.1f %% of what we "
			   "delivered",
			   100 * j.share_least, 100 * j.share_most);
		if (!row.side[3].label)
			bench_note("io_uring is not permitted here, so no bound uses it");
	}
	data_files_close(&j.files);
	free(j.pieces.ring);
	free(j.hashed);
	free((void *)(uintptr_t)j.pieces.piece);
	if (c->removed)
		data_remove((char *)(uintptr_t)j.trainer.dir);
	else
		free((char *)(uintptr_t)j.trainer.dir);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);

	for (size_t i = 0; i < sizeof(cold) / sizeof(cold[0]); i++)
		if (bench_wants(b, cold[i].name))
			cold_row(b, &cold[i]);
	return bench_close(b);
}
