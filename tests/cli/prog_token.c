/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog_token.c - prints the token of a loader that made some steps, as a trainer would keep it
 *
 *   prog_token DIR SEED SHUFFLE RUN_RECORDS PHASE_UNIT WINDOW_RUNS LANES WORLD BATCH EPOCH STEPS
 *
 * SHUFFLE is a number of enum shard_shuffle.  Not a test by itself: tests/cli/cat_order.sh runs it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "shard.h"

static int check(int rc, const struct shard_error *err)
{
	if (rc < 0) {
		fprintf(stderr, "prog_token: %s\n", err->message);
		exit(1);
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct shard_loader_options o = {.size = sizeof(o)};
	uint64_t number[12] = {0};
	char token[SHARD_TOKEN_BYTES];
	struct shard_dataset *ds;
	struct shard_loader *loader;
	struct shard_batch batch;
	struct shard_error err;

	if (argc != 12) {
		fputs("prog_token: see its first lines\n", stderr);
		return 2;
	}
	for (int i = 2; i < 12; i++)
		number[i] = strtoull(argv[i], NULL, 10);
	o.order.seed = number[2];
	o.order.shuffle = (uint32_t)number[3];
	o.order.run_records = number[4];
	o.order.phase_unit_records = number[5];
	o.order.window_runs = (uint32_t)number[6];
	o.order.lane_count = (uint32_t)number[7];
	o.world = (uint32_t)number[8];
	o.batch_records = (uint32_t)number[9];
	check(shard_dataset_open(&ds, argv[1], NULL, &err), &err);
	check(shard_loader_open(&loader, ds, &o, &err), &err);
	check(shard_loader_seek(loader, number[10], 0, &err), &err);
	for (uint64_t i = 0; i < number[11]; i++) {
		check(shard_loader_next(loader, &batch, &err), &err);
		check(shard_loader_release(loader, &batch, &err), &err);
	}
	shard_loader_token(loader, token);
	puts(token);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	return 0;
}
