/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - nanoseconds for the place of one record in a shuffled epoch, through the public calls
 *
 * 1,281,167 is ImageNet's; both sizes are too large for a table, so each index runs through the
 * network.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/common/data.h"
#include "shard_pack.h"

#define IMAGENET    UINT64_C(1281167)
#define LARGE	    UINT64_C(100000000)
#define INDEX_COUNT UINT64_C(1000000) /* of each measurement */

struct job {
	uint64_t *idx, n;
	struct shard_loader *loader;
};

static double run_shuffle(void *context)
{
	struct job *j = context;
	struct shard_error err;
	double begin = bench_seconds();

	if (shard_shuffle(1, j->n, j->n / 7, INDEX_COUNT, j->idx, &err))
		bench_die("%s", err.message);
	return (bench_seconds() - begin) * 1e9 / (double)INDEX_COUNT;
}

static double run_loader(void *context)
{
	struct job *j = context;
	struct shard_error err;
	double begin = bench_seconds();

	if (shard_loader_order(j->loader, 3, 0, INDEX_COUNT, j->idx, &err))
		bench_die("%s", err.message);
	return (bench_seconds() - begin) * 1e9 / (double)INDEX_COUNT;
}

/* A dataset of that many records of one byte, in one shard. */
static char *make_small(const char *in, uint64_t record_count)
{
	struct shard_schema schema = {.group_count = 1, .field_count = 1, .field = {{.name = "x", .dtype = SHARD_U8}}};
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = record_count, .skip_read_back = 1};
	struct shard_seal_options so = {.size = sizeof(so)};
	struct shard_written written;
	struct shard_writer *w;
	struct shard_seal *seal;
	struct shard_error err;
	char *dir, path[4096];
	int rc;

	if (asprintf(&dir, "%s/small", in) < 0)
		bench_die("out of memory");
	snprintf(path, sizeof(path), "%s/dataset.manifest", dir);
	if (access(path, F_OK) == 0)
		return dir;
	snprintf(path, sizeof(path), "%s/00000.shard", dir);
	if (mkdir(dir, 0777))
		bench_die("%s: cannot be made", dir);
	rc = shard_schema_lay_out(&schema, 0, &err);
	if (!rc)
		rc = shard_writer_open(&w, path, &schema, &o, &err);
	for (uint64_t i = 0; !rc && i < record_count; i++) {
		uint8_t x = (uint8_t)i;
		const void *group[] = {&x};

		rc = shard_writer_append(w, group, NULL, 0, &err);
	}
	if (rc || shard_writer_finish(w, &written, &err) || shard_seal_open(&seal, dir, &so, &err) ||
	    shard_seal_add(seal, "00000.shard", written.sha256, &err) || shard_seal_finish(seal, &err))
		bench_die("%s", err.message);
	shard_seal_close(seal);
	shard_writer_close(w);
	return dir;
}

static void loader_row(struct bench *b, struct job *j, const struct bench_row *row)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 256, .seed = 1};
	struct shard_dataset *ds;
	struct shard_error err;
	char *dir;

	if (!bench_wants(b, row->name))
		return;
	dir = make_small(bench_dir(b), IMAGENET);
	if (shard_dataset_open(&ds, dir, NULL, &err) || shard_loader_open(&j->loader, ds, &o, &err))
		bench_die("%s", err.message);
	bench_run(b, row);
	shard_loader_close(j->loader);
	shard_dataset_close(ds);
	free(dir);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	struct job j = {.idx = bench_memory(INDEX_COUNT * sizeof(uint64_t))};
	struct bench_row row = {.name = "order/loader/1281167",
				.unit = "ns/index",
				.less_is_better = true,
				.warm_up_count = 1,
				.context = &j,
				.side = {{"shard_loader_order", run_loader, NULL, NULL, 0}}};

	loader_row(b, &j, &row);
	row.side[0] = (struct bench_side){"shard_shuffle", run_shuffle, NULL, NULL, 0};
	row.name = "order/shuffle/1281167";
	j.n = IMAGENET;
	bench_run(b, &row);
	row.name = "order/shuffle/100000000";
	j.n = LARGE;
	bench_run(b, &row);
	free(j.idx);
	return bench_close(b);
}
