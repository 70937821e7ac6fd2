/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - images per second of `shardpack images` against bench/bound_pack on the same photos and
 * as many threads: JPEGs, PNGs, WebPs
 *
 * Both are programs.  Ours is timed from its start to its end: it lists and plans, writes, makes
 * durable, reads back, seals.  The bound times its own loop, without its start.  Each run of ours
 * makes a new folder on the disk.  A hash over all records says that both make the same pixels.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

#include "bench/common/bench.h"
#include "shard.h"

struct job {
	char source[4096], out[4096], list[4096], shardpack[4200], bound_pack[4200], pillow[64], threads[16];
	uint64_t photo_count;
	uint64_t sum; /* of the XXH3-64 of the bound's records; 0: not asked for yet */
};

/* Run a program to its end.  Its standard output goes to `answer`, if that is not NULL. */
static void run_program(char *const argv[], const char *input, char *answer, size_t answer_bytes)
{
	int out[2], status;
	size_t got = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(out) || (pid = fork()) < 0)
		bench_die("%s: cannot be started", argv[0]);
	if (!pid) {
		int in = open(input, O_RDONLY);

		if (in < 0 || dup2(in, 0) < 0 || dup2(out[1], 1) < 0)
			_exit(126);
		close(out[0]);
		close(out[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(out[1]);
	while (got + 1 < answer_bytes && (n = read(out[0], answer + got, answer_bytes - 1 - got)) > 0)
		got += (size_t)n;
	answer[got] = 0;
	close(out[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_die("%s: failed (status %d)", argv[0], status);
}

static bool prepare(void *context)
{
	struct job *j = context;

	bench_remove(j->out);
	sync();
	return true;
}

/* Of all records, in any order. */
static uint64_t sum_of(struct shard_dataset *ds)
{
	const struct shard_group *pixels = &shard_dataset_schema(ds)->group[0];
	uint8_t *record = bench_memory(pixels->stride);
	void *group[SHARD_GROUPS_MAX] = {record};
	struct shard_dataset_info info;
	struct shard_error err;
	uint64_t sum = 0;

	shard_dataset_info(ds, &info);
	for (uint64_t i = 0; i < info.record_count; i++) {
		if (shard_dataset_read(ds, &i, 1, group, &err))
			bench_die("%s", err.message);
		sum += XXH3_64bits(record, pixels->record_bytes);
	}
	free(record);
	return sum;
}

/* The work was done: as many records as photos, with the pixels that the bound makes. */
static bool check(void *context)
{
	struct job *j = context;
	char *const argv[] = {j->bound_pack, j->threads, "sum", NULL};
	struct shard_dataset_info info;
	struct shard_dataset *ds;
	struct shard_error err;
	char answer[64];

	if (!j->sum) {
		run_program(argv, j->list, answer, sizeof(answer));
		j->sum = strtoull(answer, NULL, 10);
	}
	if (shard_dataset_open(&ds, j->out, NULL, &err))
		bench_die("%s", err.message);
	shard_dataset_info(ds, &info);
	if (info.record_count != j->photo_count)
		bench_die("%s: has %" PRIu64 " records; there are %" PRIu64 " photos", j->out, info.record_count,
			  j->photo_count);
	if (sum_of(ds) != j->sum)
		bench_die("%s: has other pixels than %s makes", j->out, j->bound_pack);
	shard_dataset_close(ds);
	return true;
}

static double run_shardpack_with(struct job *j, char *option)
{
	char *const argv[] = {j->shardpack, "images", j->source, "-o",	     j->out, "--resize", "256",
			      "--crop",	    "224",    "-j",	 j->threads, "-q",   option,	 NULL};
	char answer[4096];
	double begin = bench_seconds();

	run_program(argv, "/dev/null", answer, sizeof(answer));
	return (double)j->photo_count / (bench_seconds() - begin);
}

static double run_shardpack(void *context)
{
	return run_shardpack_with(context, NULL);
}

static double run_sandbox(void *context)
{
	char option[] = "--sandbox";

	return run_shardpack_with(context, option);
}

static double run_bound(void *context)
{
	struct job *j = context;
	char *const argv[] = {j->bound_pack, j->threads, NULL};
	char answer[64];

	run_program(argv, j->list, answer, sizeof(answer));
	return strtod(answer, NULL);
}

static double run_pillow(void *context)
{
	struct job *j = context;
	char *const argv[] = {j->pillow, "bench/pillow_pack.py", NULL};
	char answer[64];

	run_program(argv, j->list, answer, sizeof(answer));
	return strtod(answer, NULL);
}

static void list_photos(struct job *j)
{
	char *const roots[] = {j->source, NULL};
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOSTAT, NULL);
	FILE *f = fopen(j->list, "we");
	FTSENT *e;

	if (!tree || !f)
		bench_die("%s: cannot be listed into %s: %s", j->source, j->list, strerror(errno));
	j->photo_count = j->sum = 0;
	while ((e = fts_read(tree)))
		if (e->fts_info == FTS_F || e->fts_info == FTS_NSOK) {
			fprintf(f, "%s\n", e->fts_path);
			j->photo_count++;
		}
	fts_close(tree);
	if (fclose(f) || !j->photo_count)
		bench_die("%s: has no photos", j->source);
}

static const struct {
	const char *name, *folder, *threads;
} rows[] = {{"pack/images/1", "train", "1"}, {"pack/images/2", "train", "2"},  {"pack/pillow", "train", "1"},
	    {"pack/png/1", "png", "1"},	     {"pack/png/2", "png", "2"},       {"pack/webp/1", "webp", "1"},
	    {"pack/webp/2", "webp", "2"},    {"pack/sandbox/1", "train", "1"}, {"pack/sandbox/2", "train", "2"}};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void measure(struct bench *b, struct job *j, size_t row)
{
	struct bench_row beside_loop = {
		.name = rows[row].name,
		.unit = "images/s",
		.cpu_unit = "CPU s/image",
		.context = j,
		.side = {{"shardpack images, start to end", run_shardpack, prepare, check, 0},
			 {"bound_pack, its loop", run_bound, prepare, NULL, 0}},
	};
	struct bench_row beside_pillow = {
		.name = rows[row].name,
		.unit = "images/s",
		.context = j,
		.side = {{"shardpack images -j 1, start to end", run_shardpack, prepare, check, 0},
			 {"a loop with Pillow that has the same bytes, one process", run_pillow, prepare, NULL, 0}}};
	struct bench_row without = {
		.name = rows[row].name,
		.unit = "images/s",
		.cpu_unit = "CPU s/image",
		.context = j,
		.side = {{"shardpack images --sandbox, start to end", run_sandbox, prepare, check, 0},
			 {"the same without --sandbox", run_shardpack, prepare, check, 0}}};
	struct bench_row *r = !strcmp(rows[row].name, "pack/pillow")	      ? &beside_pillow
			      : !strncmp(rows[row].name, "pack/sandbox/", 13) ? &without
									      : &beside_loop;

	if (!bench_wants(b, rows[row].name))
		return;
	snprintf(j->source, sizeof(j->source), "%s/%s", bench_corpus(b), rows[row].folder);
	snprintf(j->threads, sizeof(j->threads), "%s", rows[row].threads);
	list_photos(j);
	beside_loop.cpu_work = without.cpu_work = (double)j->photo_count;
	bench_run(b, r);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	static struct job j;
	const char *python = getenv("PYTHON");

	if (!bench_corpus(b)) {
		for (size_t i = 0; i < ROWS; i++)
			bench_skipped(b, rows[i].name,
				      "no photos to pack: bench/corpus.py needs Python with Pillow and NumPy (Debian: "
				      "python3-pil python3-numpy)");
		return bench_close(b);
	}
	snprintf(j.out, sizeof(j.out), "%s/packed", bench_dir(b));
	snprintf(j.list, sizeof(j.list), "%s/photos.list", bench_dir(b));
	snprintf(j.shardpack, sizeof(j.shardpack), "%s/bin/shardpack", bench_build(b));
	snprintf(j.bound_pack, sizeof(j.bound_pack), "%s/bench/bound_pack", bench_build(b));
	snprintf(j.pillow, sizeof(j.pillow), "%s", python && *python ? python : "python3");
	for (size_t i = 0; i < ROWS; i++)
		measure(b, &j, i);
	bench_remove(j.out);
	return bench_close(b);
}
