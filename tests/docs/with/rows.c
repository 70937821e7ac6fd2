/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - around a batch in host memory whose rows are drawn first, in a trainer that has
 * crop_mask()
 */
#include <shard_transform.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t inside;

static void die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

static void crop_mask(uint32_t from, uint32_t x, uint32_t y, uint32_t width, uint32_t height, uint32_t flip)
{
	inside += from < 12 && x + width <= 64 && y + height <= 64 && flip <= 1;
}

int main(void)
{
	struct shard_loader_options options = {.size = sizeof(options), .batch_records = 12, .order.seed = 1};
	struct shard_transform_options to = {
		.size = sizeof(to), .height = 56, .width = 56, .crop = SHARD_CROP_RANDOM, .flip = 0.5};
	struct shard_transform *transform;
	struct shard_dataset *ds;
	struct shard_loader *loader;
	struct shard_batch batch;
	struct shard_error err;
	void *numbers;

	if (shard_dataset_open(&ds, "ds/train", NULL, &err) || shard_loader_open(&loader, ds, &options, &err) ||
	    shard_transform_open(&transform, loader, "image", &to, &err) || shard_loader_next(loader, &batch, &err))
		die(err.message);
	numbers = malloc(12 * shard_transform_row_bytes(transform));
	if (!numbers)
		die("out of memory");
#include "block.c"
	free(numbers);
	shard_transform_close(transform);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	return inside == 12 ? 0 : 2;
}
