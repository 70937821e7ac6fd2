/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.c - around an epoch of batches on a GPU
 *
 * CFLAGS: -I. twins.o -ldl -lm -pthread
 */
#include "tests/docs/with/gpu.h"

int main(void)
{
	struct shard_loader_options options = {.size = sizeof(options), .batch_records = 12, .order.seed = 1};
	struct shard_dataset *ds = open_dataset();
	struct shard_loader *loader;
	struct shard_batch batch;
	struct shard_error err;
	void *stream = NULL;
	int rc;

	if (shard_loader_open(&loader, ds, &options, &err))
		die(err.message);
#include "block.c"
	if (rc != SHARD_END)
		die(err.message);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	return seen == 108 ? 0 : 2;
}
