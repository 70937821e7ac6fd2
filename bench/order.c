/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - nanoseconds for the place of one record in a shuffled epoch, through the public calls
 *
 * 1,281,167 is ImageNet's; both sizes are too large for a table, so each index runs through the
 * network.
 */
#include <stdlib.h>

#include "bench/common/column.h"
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

	if (shard_pack_order(1, j->n, j->n / 7, INDEX_COUNT, j->idx, &err))
		bench_die("%s", err.message);
	return (bench_seconds() - begin) * 1e9 / (double)INDEX_COUNT;
}

static double run_loader(void *context)
{
	struct job *j = context;
	struct shard_error err;
	double begin = bench_seconds();

	if (shard_loader_order(j->loader, 3, 0, INDEX_COUNT, NULL, j->idx, &err))
		bench_die("%s", err.message);
	return (bench_seconds() - begin) * 1e9 / (double)INDEX_COUNT;
}

static void loader_row(struct bench *b, struct job *j, const struct bench_row *row)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 256, .order.seed = 1};
	struct shard_dataset *ds;
	struct shard_error err;
	char *dir;

	if (!bench_wants(b, row->name))
		return;
	dir = data_make_column(b, "small", SHARD_U8, IMAGENET);
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
	row.side[0] = (struct bench_side){"shard_pack_order", run_shuffle, NULL, NULL, 0};
	row.name = "order/shuffle/1281167";
	j.n = IMAGENET;
	bench_run(b, &row);
	row.name = "order/shuffle/100000000";
	j.n = LARGE;
	bench_run(b, &row);
	free(j.idx);
	return bench_close(b);
}
