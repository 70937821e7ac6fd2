/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - around the options of a loader with a pool on a GPU
 *
 * CFLAGS: -I. twins.o -ldl -lm -pthread
 */
#include "tests/docs/with/gpu.h"

int main(void)
{
#include "block.c"
#include "shard_gpu.h"
	struct shard_dataset *ds = open_dataset();
	struct shard_loader *loader;
	struct shard_batch batch;
	struct shard_error err;
	int rc;

	if (shard_loader_open(&loader, ds, &options, &err))
		die(err.message);
	while ((rc = shard_loader_next_device(loader, NULL, &batch, &err)) == SHARD_OK) {
		step(batch.group[0].data, batch.group[1].data, batch.record_count, NULL);
		if (shard_loader_release_after(loader, &batch, NULL, &err))
			die(err.message);
	}
	if (rc != SHARD_END)
		die(err.message);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	return seen == 108 ? 0 : 2;
}
