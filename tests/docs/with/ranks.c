/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - around the options of a loader that is one of several ranks */
#include <shard.h>
#include <stdio.h>

int main(void)
{
	struct shard_dataset *ds;
	struct shard_loader *loader;
	struct shard_error err;
	uint64_t steps = 0, expected = 0;
	struct shard_dataset_info info;

	if (shard_dataset_open(&ds, "ds/train", NULL, &err))
		return 1;
	shard_dataset_info(ds, &info);
	for (uint32_t rank = 0, world = 3; rank < world; rank++) {
#include "block.c"
		if (shard_loader_open(&loader, ds, &options, &err))
			return 2;
		steps += shard_loader_step_count(loader);
		expected += info.record_count / 12 / world;
		shard_loader_close(loader);
	}
	shard_dataset_close(ds);
	return steps && steps == expected ? 0 : 3;
}
