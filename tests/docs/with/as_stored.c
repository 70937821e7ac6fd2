/* SPDX-License-Identifier: Apache-2.0 */
/* as_stored.c - around the name of a field that stays; the photos have none, so it is looked for */
#include <shard_transform.h>
#include <stdint.h>
#include <string.h>

int main(void)
{
	struct shard_loader_options options = {.size = sizeof(options), .batch_records = 12};
	struct shard_transform_options to = {.size = sizeof(to), .flip = 0.5};
	struct shard_loader_transform images = {.size = sizeof(images), .field = "image", .options = &to};
	struct shard_dataset *ds;
	struct shard_loader *loader;
	struct shard_error err;

	if (shard_dataset_open(&ds, "ds/train", NULL, &err))
		return 1;
#include "block.c"
	options.transform = &images;
	if (shard_loader_open(&loader, ds, &options, &err) != SHARD_E_ARGUMENT)
		return 2;
	shard_dataset_close(ds);
	return !strstr(err.message, "as_stored names 'scores', and the dataset has no such field");
}
