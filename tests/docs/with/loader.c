/* SPDX-License-Identifier: Apache-2.0 */
/* loader.c - around statements that use an open dataset and loader, in a program that has die() */
#include <shard.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

int main(void)
{
	struct shard_loader_options options = {.size = sizeof(options), .batch_records = 12, .order.seed = 1};
	struct shard_dataset *ds;
	struct shard_loader *loader;
	struct shard_batch batch;
	struct shard_error err;
	int rc;

	if (shard_dataset_open(&ds, "ds/train", NULL, &err) || shard_loader_open(&loader, ds, &options, &err))
		die(err.message);
#include "block.c"
	/* The loader is still good for the rest of an epoch. */
	while ((rc = shard_loader_next(loader, &batch, &err)) == SHARD_OK)
		shard_loader_release(loader, &batch, &err);
	if (rc != SHARD_END)
		die(err.message);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	return 0;
}
