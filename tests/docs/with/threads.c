/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - around an epoch of batches whose images the loader's threads transform */
#include <shard_transform.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seen;

static void die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

static void step(const float *images, const void *labels, uint32_t count)
{
	if (images[0] > -4 && images[0] < 4 && labels)
		seen += count;
}

int main(void)
{
	struct shard_loader_options options = {.size = sizeof(options), .batch_records = 12, .order.seed = 1};
	struct shard_dataset *ds;
	struct shard_loader *loader;
	struct shard_batch batch;
	struct shard_error err;
	int rc;
	struct shard_transform_options to = {
		.size = sizeof(to), .height = 56, .width = 56, .crop = SHARD_CROP_RANDOM, .flip = 0.5};

	if (shard_dataset_open(&ds, "ds/train", NULL, &err))
		die(err.message);
#include "block.c"
	if (rc != SHARD_END)
		die(err.message);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	return seen == 108 ? 0 : 2;
}
