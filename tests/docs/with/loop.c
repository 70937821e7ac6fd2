/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - around an epoch of the dataset ds/train, in a trainer that has step() and die() */
#include <shard.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seen;

static void die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

static void step(const void *images, const void *labels, uint32_t count)
{
	seen += images && labels ? count : 0;
}

int main(void)
{
	struct shard_dataset_info info;

#include "block.c"
	shard_dataset_info(ds, &info);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	return seen && seen == info.record_count / 32 * 32 ? 0 : 2; /* in whole batches of 32 */
}
