/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_records.c - GB/s of `shardpack raw` and `shardpack tokens` against a bare copy with XXH3 of
 * the same bytes
 *
 * Ours is a program, timed from its start to its end: plan, shuffle, write, SHA-256, make durable,
 * read back from the disk and verify, seal.  The bound reads a megabyte, hashes it, writes it, and
 * at its end makes it durable once.  That moves half the bytes; in the rows called read_back the
 * bound also reads and hashes what it wrote, past the page cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "bench/common/bench.h"

#define FILE_BYTES  (UINT64_C(512) << 20)
#define PIECE_BYTES (1u << 20)

struct job {
	char source[4096], out[4096], copy[4096], shardpack[4200];
	const char *threads;
	bool tokens, reads_back; /* the bound does */
	uint8_t *piece;
	uint64_t sum; /* so that no hash is optimized away */
};

static bool prepare(void *context)
{
	struct job *j = context;

	bench_remove(j->out);
	unlink(j->copy);
	sync();
	return true;
}

static double run_shardpack(void *context)
{
	struct job *j = context;
	char *const raw[] = {j->shardpack, "raw", j->source,	      "-o", j->out, "--schema",
			     "x:u8[4096]", "-j",  (char *)j->threads, "-q", NULL};
	char *const tokens[] = {j->shardpack, "tokens", j->source,	    "-o", j->out, "--seq-len",
				"1024",	      "-j",	(char *)j->threads, "-q", NULL};
	double begin = bench_seconds();
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		execv(j->shardpack, j->tokens ? tokens : raw);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		bench_die("%s: failed (status %d)", j->shardpack, status);
	return (double)FILE_BYTES / (bench_seconds() - begin) / 1e9;
}

/* What `shardpack` does with its own output before it gives it a name, in the simplest way. */
static void read_back(struct job *j)
{
	int in = open(j->copy, O_RDONLY | O_DIRECT | O_CLOEXEC);
	ssize_t n;

	if (in < 0)
		bench_die("%s: %s", j->copy, strerror(errno));
	while ((n = read(in, j->piece, PIECE_BYTES)) > 0)
		j->sum += XXH3_64bits(j->piece, (size_t)n);
	if (n || close(in))
		bench_die("%s: %s", j->copy, strerror(errno));
}

static double run_bound(void *context)
{
	struct job *j = context;
	double begin = bench_seconds();
	int in = open(j->source, O_RDONLY | O_CLOEXEC),
	    out = open(j->copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n;

	if (in < 0 || out < 0)
		bench_die("%s: %s", in < 0 ? j->source : j->copy, strerror(errno));
	while ((n = read(in, j->piece, PIECE_BYTES)) > 0) {
		j->sum += XXH3_64bits(j->piece, (size_t)n);
		if (write(out, j->piece, (size_t)n) != n)
			bench_die("%s: %s", j->copy, strerror(errno));
	}
	if (fsync(out) || close(out) || close(in))
		bench_die("%s: %s", j->copy, strerror(errno));
	if (j->reads_back)
		read_back(j);
	return (double)FILE_BYTES / (bench_seconds() - begin) / 1e9;
}

static void make_source(const struct job *j)
{
	FILE *f = fopen(j->source, "wbe");

	for (uint64_t at = 0; f && at < FILE_BYTES; at += PIECE_BYTES) {
		bench_random_fill(j->piece, PIECE_BYTES, at);
		if (fwrite(j->piece, 1, PIECE_BYTES, f) != PIECE_BYTES)
			bench_die("%s: %s", j->source, strerror(errno));
	}
	if (!f || fclose(f))
		bench_die("%s: %s", j->source, strerror(errno));
}

static void measure(struct bench *b, struct job *j, const char *name, bool tokens, bool reads_back, const char *threads)
{
	struct bench_row row = {
		.name = name,
		.unit = "GB/s",
		.warm_up_count = 1,
		.cpu_unit = "CPU s/GB",
		.cpu_work = (double)FILE_BYTES / 1e9,
		.context = j,
		.side = {{tokens ? "shardpack tokens, start to end" : "shardpack raw, start to end", run_shardpack,
			  prepare, NULL, 0},
			 {reads_back ? "a bare copy, XXH3, fsync, read back" : "a bare copy, XXH3, fsync", run_bound,
			  prepare, NULL, 0}},
	};

	j->tokens = tokens;
	j->reads_back = reads_back;
	j->threads = threads;
	bench_run(b, &row);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool tokens, reads_back;
		const char *threads;
	} rows[] = {{"pack/raw/4096/1", false, false, "1"},	{"pack/raw/4096/2", false, false, "2"},
		    {"pack/tokens/1024/1", true, false, "1"},	{"pack/tokens/1024/2", true, false, "2"},
		    {"pack/raw/read_back/1", false, true, "1"}, {"pack/raw/read_back/2", false, true, "2"}};
	struct bench *b = bench_open(argc, argv);
	static struct job j;
	bool wanted = false;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		wanted |= bench_wants(b, rows[i].name);
	if (!wanted)
		return bench_close(b);
	snprintf(j.source, sizeof(j.source), "%s/records.raw", bench_dir(b));
	snprintf(j.out, sizeof(j.out), "%s/records", bench_dir(b));
	snprintf(j.copy, sizeof(j.copy), "%s/records.copy", bench_dir(b));
	snprintf(j.shardpack, sizeof(j.shardpack), "%s/bin/shardpack", bench_build(b));
	j.piece = bench_memory(PIECE_BYTES);
	make_source(&j);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		measure(b, &j, rows[i].name, rows[i].tokens, rows[i].reads_back, rows[i].threads);
	prepare(&j);
	unlink(j.source);
	return bench_close(b);
}
