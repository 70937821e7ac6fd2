/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_records.c - GB/s of `shardpack raw` and `shardpack tokens` against a bare loop that does
 * what the format demands
 *
 * Ours is a program, timed from its start to its end: plan, shuffle, write, SHA-256, make durable,
 * read back from the disk and verify, seal.  The bound makes files of the same records in an order
 * as random; bound_shards.h says how.  Beside it stands the same loop without SHA-256, which is no
 * bound, because the manifest has that of every file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/bound_shards.h"
#include "shard_pack.h"

#define FILE_BYTES  (UINT64_C(512) << 20)
#define PIECE_BYTES (1u << 20)

#define SHARDS 8u /* what `shardpack` makes of as many bytes */

struct job {
	char source[4096], out[4096], copy[4096], shardpack[4200];
	const char *threads;
	bool tokens;
	struct bound_shards bound;
};

static bool prepare(void *context)
{
	struct job *j = context;

	bench_remove(j->out);
	bench_remove(j->copy);
	if (mkdir(j->copy, 0755))
		bench_die("%s: %s", j->copy, strerror(errno));
	sync();
	return true;
}

static double run_shardpack(void *context)
{
	struct job *j = context;
	char *const raw[] = {j->shardpack, "raw", j->source,	      "-o", j->out, "--schema",
			     "x:u8[4096]", "-j",  (char *)j->threads, "-q", NULL};
	/* As numbers they are too random to be taken for tokens without --dtype. */
	char *const tokens[] = {j->shardpack,	    "tokens", j->source, "-o",	j->out,
				"--seq-len",	    "1024",   "--dtype", "u16", "-j",
				(char *)j->threads, "-q",     NULL};
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

static double run_loop(const struct job *j, bool hashes_files)
{
	struct bound_shards b = j->bound;

	b.hashes_files = hashes_files;
	return (double)FILE_BYTES / bound_shards(&b, (unsigned)strtoul(j->threads, NULL, 10)) / 1e9;
}

static double run_bound(void *context)
{
	return run_loop(context, true);
}

static double run_without(void *context)
{
	return run_loop(context, false);
}

/* As many records, as long, and as far apart as ours. */
static void describe(struct job *j)
{
	struct bound_shards *b = &j->bound;
	uint64_t *order, seed = 1;
	struct shard_error err;

	*b = (struct bound_shards){.source = j->source, .dir = j->copy, .shard_count = SHARDS};
	b->record_bytes = j->tokens ? 2050 : 4096;
	b->step_bytes = j->tokens ? 2048 : 4096;
	b->stride = j->tokens ? 2112 : 4096;
	b->unit_records = j->tokens ? 2 : 1;
	b->record_count = (FILE_BYTES - b->record_bytes) / b->step_bytes + 1;
	order = calloc(b->record_count, sizeof(*order));
	if (!order)
		bench_die("out of memory");
	if (shard_pack_order(seed, b->record_count, 0, b->record_count, order, &err))
		bench_die("%s", err.message);
	b->order = order;
}

/* The bound's work is that of ours. */
static bool check(void *context)
{
	struct job *j = context;
	struct shard_dataset_info info;
	struct shard_schema schema;
	struct shard_dataset *ds;
	struct shard_error err;

	if (shard_dataset_open(&ds, j->out, NULL, &err))
		bench_die("%s", err.message);
	shard_dataset_info(ds, &info);
	schema = *shard_dataset_schema(ds);
	shard_dataset_close(ds);
	if (info.record_count != j->bound.record_count || info.shard_count != SHARDS ||
	    schema.group[0].stride != j->bound.stride || schema.group[0].unit_records != j->bound.unit_records)
		bench_die("%s: has other records, shards, strides or units than the bound", j->out);
	return true;
}

static void make_source(const struct job *j)
{
	uint8_t *piece = bench_memory(PIECE_BYTES);
	FILE *f = fopen(j->source, "wbe");

	for (uint64_t at = 0; f && at < FILE_BYTES; at += PIECE_BYTES) {
		bench_random_fill(piece, PIECE_BYTES, at);
		if (fwrite(piece, 1, PIECE_BYTES, f) != PIECE_BYTES)
			bench_die("%s: %s", j->source, strerror(errno));
	}
	if (!f || fclose(f))
		bench_die("%s: %s", j->source, strerror(errno));
	free(piece);
}

static void measure(struct bench *b, struct job *j, const char *name, bool tokens, const char *threads)
{
	struct bench_row row = {
		.name = name,
		.unit = "GB/s",
		.warm_up_count = 1,
		.cpu_unit = "CPU s/GB",
		.cpu_work = (double)FILE_BYTES / 1e9,
		.context = j,
		.side = {{tokens ? "shardpack tokens, start to end" : "shardpack raw, start to end", run_shardpack,
			  prepare, check, 0},
			 {"copy, XXH3, SHA-256, fsync, read back, XXH3", run_bound, prepare, NULL, 0},
			 {"the same without SHA-256", run_without, prepare, NULL, BENCH_ASIDE}},
	};

	j->tokens = tokens;
	j->threads = threads;
	if (!bench_wants(b, name))
		return;
	if (!bound_shards_can()) {
		bench_skipped(b, name, "the bound needs io_uring and SHA instructions");
		return;
	}
	describe(j);
	bench_run(b, &row);
	free((void *)(uintptr_t)j->bound.order);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool tokens;
		const char *threads;
	} rows[] = {{"pack/raw/4096/1", false, "1"},
		    {"pack/raw/4096/2", false, "2"},
		    {"pack/tokens/1024/1", true, "1"},
		    {"pack/tokens/1024/2", true, "2"}};
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
	make_source(&j);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		measure(b, &j, rows[i].name, rows[i].tokens, rows[i].threads);
	bench_remove(j.out);
	bench_remove(j.copy);
	unlink(j.source);
	return bench_close(b);
}
