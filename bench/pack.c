/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - images per second of `shardpack images` against bench/bound_pack on the same photos and
 * as many threads
 *
 * Both are programs.  Ours is timed from its start to its end: it lists and plans, writes, makes
 * durable, reads back, seals.  The bound times its own loop, without its start.  Each run of ours
 * makes a new folder on the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "shard.h"

struct job {
	char source[4096], out[4096], list[4096], shardpack[4200], bound_pack[4200], pillow[64], threads[16];
	uint64_t photo_count;
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

/* The work was done: as many records as photos. */
static bool check(void *context)
{
	struct job *j = context;
	struct shard_dataset *ds;
	struct shard_error err;

	if (shard_dataset_open(&ds, j->out, NULL, &err))
		bench_die("%s", err.message);
	if (shard_dataset_record_count(ds) != j->photo_count)
		bench_die("%s: has %llu records; there are %llu photos", j->out,
			  (unsigned long long)shard_dataset_record_count(ds), (unsigned long long)j->photo_count);
	shard_dataset_close(ds);
	return true;
}

static double run_shardpack(void *context)
{
	struct job *j = context;
	char *const argv[] = {j->shardpack, "images", j->source, "-o",	     j->out, "--resize", "256",
			      "--crop",	    "224",    "-j",	 j->threads, "-q",   NULL};
	char answer[4096];
	double begin = bench_seconds();

	run_program(argv, "/dev/null", answer, sizeof(answer));
	return (double)j->photo_count / (bench_seconds() - begin);
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
	while ((e = fts_read(tree)))
		if (e->fts_info == FTS_F || e->fts_info == FTS_NSOK) {
			fprintf(f, "%s\n", e->fts_path);
			j->photo_count++;
		}
	fts_close(tree);
	if (fclose(f) || !j->photo_count)
		bench_die("%s: has no photos", j->source);
}

static void threads_row(struct bench *b, struct job *j, const char *name, const char *threads)
{
	struct bench_row row = {
		.name = name,
		.unit = "images/s",
		.cpu_unit = "CPU s/image",
		.cpu_work = (double)j->photo_count,
		.context = j,
		.side = {{"shardpack images, start to end", run_shardpack, prepare, check, 0},
			 {"bound_pack, its loop", run_bound, prepare, NULL, 0}},
	};

	snprintf(j->threads, sizeof(j->threads), "%s", threads);
	bench_run(b, &row);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	static struct job j;
	struct bench_row pillow = {
		.name = "pack/pillow",
		.unit = "images/s",
		.context = &j,
		.side = {{"shardpack images -j 1, start to end", run_shardpack, prepare, check, 0},
			 {"a loop with Pillow that has the same bytes, one process", run_pillow, prepare, NULL, 0}}};
	const char *python = getenv("PYTHON");

	if (!bench_wants(b, "pack/images/1") && !bench_wants(b, "pack/images/2") && !bench_wants(b, "pack/pillow"))
		return bench_close(b);
	if (!bench_corpus(b)) {
		const char *why = "no photos to pack: bench/corpus.py needs Python with Pillow and NumPy (Debian: "
				  "python3-pil python3-numpy)";

		bench_skipped(b, "pack/images/1", why);
		bench_skipped(b, "pack/images/2", why);
		bench_skipped(b, "pack/pillow", why);
		return bench_close(b);
	}
	snprintf(j.source, sizeof(j.source), "%s/train", bench_corpus(b));
	snprintf(j.out, sizeof(j.out), "%s/packed", bench_dir(b));
	snprintf(j.list, sizeof(j.list), "%s/photos.list", bench_dir(b));
	snprintf(j.shardpack, sizeof(j.shardpack), "%s/bin/shardpack", bench_build(b));
	snprintf(j.bound_pack, sizeof(j.bound_pack), "%s/bench/bound_pack", bench_build(b));
	snprintf(j.pillow, sizeof(j.pillow), "%s", python && *python ? python : "python3");
	list_photos(&j);
	threads_row(b, &j, "pack/images/1", "1");
	threads_row(b, &j, "pack/images/2", "2");
	snprintf(j.threads, sizeof(j.threads), "1");
	bench_run(b, &pillow);
	bench_remove(j.out);
	return bench_close(b);
}
