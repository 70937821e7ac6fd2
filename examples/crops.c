/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crops.c - which part of each image did the network see?  And the same part of something else
 *
 *   cc -O2 crops.c -o crops $(pkg-config --cflags --libs libshard)
 *   ./crops DATASET SIDE
 *
 * The threads of a loader cut a random square of SIDE pixels out of each image and mirror half of
 * them.  shard_loader_drawn() tells what they drew, so a trainer can log it.  A second transform then
 * takes the same squares again, once mirrored and once not: shard_transform_draw() gives what was
 * drawn, the program changes it, and shard_transform_host() applies it.  So do trainers that need
 * the image twice, or whose masks are in another file.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"
#include "shard_transform.h"

#define ROWS 8u

/* Is row `a` of u8 [height, width, channels] row `b`, mirrored? */
static int is_mirrored(const unsigned char *a, const unsigned char *b, size_t side, size_t channels)
{
	for (size_t y = 0; y < side; y++)
		for (size_t x = 0; x < side; x++)
			if (memcmp(a + (y * side + x) * channels, b + (y * side + side - 1 - x) * channels, channels))
				return 0;
	return 1;
}

int main(int argc, char **argv)
{
	struct shard_transform_options to = {
		.size = sizeof(to), .dtype = SHARD_U8, .layout = SHARD_HWC, .crop = SHARD_CROP_RANDOM, .flip = 0.5};
	struct shard_loader_transform images = {.size = sizeof(images), .field = "image", .options = &to};
	struct shard_loader_options plain = {.size = sizeof(plain), .batch_records = ROWS, .order = {.seed = 1}};
	struct shard_loader_options cropped = plain;
	struct shard_transform_row drawn[ROWS], again[2 * ROWS];
	struct shard_loader *stored, *loader;
	struct shard_transform *transform;
	struct shard_batch batch, whole;
	struct shard_dataset *ds;
	struct shard_error why;
	unsigned char *pixels;
	size_t row_bytes;

	if (argc != 3)
		errx(2, "usage: crops DATASET SIDE");
	to.height = to.width = (uint32_t)strtoul(argv[2], NULL, 10);
	cropped.transform = &images;
	if (shard_dataset_open(&ds, argv[1], NULL, &why) || shard_loader_open(&loader, ds, &cropped, &why) ||
	    shard_loader_open(&stored, ds, &plain, &why) ||
	    shard_transform_open(&transform, stored, "image", &to, &why))
		errx(1, "%s", why.message);

	/* What the loader drew. */
	if (shard_loader_next(loader, &batch, &why) || shard_loader_drawn(loader, &batch, drawn, &why))
		errx(1, "%s", why.message);
	for (uint32_t i = 0; i < batch.record_count; i++)
		printf("record %" PRIu64 ": %" PRIu32 " x %" PRIu32 " from %" PRIu32 ",%" PRIu32 "%s\n",
		       batch.record[i], drawn[i].width, drawn[i].height, drawn[i].x, drawn[i].y,
		       drawn[i].flip ? ", mirrored" : "");

	/* The same batch as it is stored.  Seed, epoch and position are the same, so the squares are, too. */
	if (shard_loader_next(stored, &whole, &why))
		errx(1, "%s", why.message);
	shard_transform_draw(transform, &whole, 0, again);
	if (whole.record_count != batch.record_count || memcmp(again, drawn, batch.record_count * sizeof(*drawn)))
		errx(1, "the two loaders drew differently");
	for (uint32_t i = 0; i < whole.record_count; i++) { /* rows from record_count on: the other way round */
		again[whole.record_count + i] = again[i];
		again[whole.record_count + i].flip = !again[i].flip;
	}
	row_bytes = shard_transform_row_bytes(transform);
	pixels = malloc(2 * ROWS * row_bytes);
	if (!pixels)
		errx(1, "out of memory");
	if (shard_transform_host(transform, &whole, again, 2 * whole.record_count, pixels, &why))
		errx(1, "%s", why.message);
	for (uint32_t i = 0; i < whole.record_count; i++)
		if (!is_mirrored(pixels + i * row_bytes, pixels + (whole.record_count + i) * row_bytes, to.width,
				 row_bytes / to.width / to.height))
			errx(1, "row %" PRIu32 " is not the mirror image of the other", i);
	printf("%" PRIu32 " squares, and their mirror images\n", whole.record_count);
	free(pixels);
	shard_transform_close(transform);
	shard_loader_close(stored);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	return 0;
}
