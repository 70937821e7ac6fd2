/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_transform.c - transformed rows, and what is drawn, to stdout
 *
 * Not a test but a test's tool, see tests/twin/transform.py and
 * tests/python/clients/transform_torch.py.  Jobs, one after the other:
 *
 *     transform MOST CHANNELS HEIGHT WIDTH LAYOUT  HEIGHT WIDTH DTYPE LAYOUT CROP PIXELS
 *               MEANx4 STDx4  X Y WIDTH HEIGHT FLIP
 *                                          and a line end, and the image: answered by the row's
 *                                          bytes
 *     draw MOST HEIGHT WIDTH  HEIGHT WIDTH CROP FLIP AREA AREA RATIO RATIO  SEED RANK WORLD
 *          EPOCH POSITION VIEW COUNT
 *                                          for rows 0.. of the batch at that position, answered by
 *                                          lines `X Y WIDTH HEIGHT FLIP`
 *
 * The first numbers are those of the field: with MOST not 0 its images differ in size, have at most
 * so many pixels, and this one is HEIGHT x WIDTH.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/transform/transform.h"
#include "shard_transform.h"

static struct transform_plan plan;
static struct shard_error err;

static struct shard_field field_of(uint32_t most, uint32_t channels, uint32_t height, uint32_t width, uint32_t layout)
{
	struct shard_field f = {
		.name = "image", .dtype = SHARD_U8, .layout = layout, .ndim = 3, .shape = {height, width, channels}};

	if (layout == SHARD_CHW)
		memcpy(f.shape, (uint32_t[]){channels, height, width}, 3 * sizeof(uint32_t));
	f.bytes = (uint64_t)channels * height * width;
	if (most) {
		f.kind = SHARD_RAGGED;
		f.ragged_axes = 1;
		f.ndim = 2;
		memcpy(f.shape, (uint32_t[]){most, channels}, 2 * sizeof(uint32_t));
		f.bytes = (uint64_t)most * channels;
	}
	return f;
}

static void fail(const char *why)
{
	fprintf(stderr, "dump_transform: %s\n", why);
	exit(1);
}

static void make(const struct shard_field *f, const struct shard_transform_options *o)
{
	if (transform_plan_make(&plan, f, o, &err))
		fail(err.message);
}

static void transform(void)
{
	uint32_t most, channels, height, width, layout;
	struct transform_image image;
	struct shard_transform_options o = {.size = sizeof(o)};
	struct shard_transform_row row = {0};
	struct shard_field f;
	uint8_t *in, *out;
	void *scratch;
	size_t bytes;

	if (scanf("%u %u %u %u %u %u %u %u %u %u %u %f %f %f %f %f %f %f %f %u %u %u %u %u", &most, &channels, &height,
		  &width, &layout, &o.height, &o.width, &o.dtype, &o.layout, &o.crop, &o.pixels, &o.mean[0], &o.mean[1],
		  &o.mean[2], &o.mean[3], &o.std[0], &o.std[1], &o.std[2], &o.std[3], &row.x, &row.y, &row.width,
		  &row.height, &row.flip) != 24 ||
	    getchar() != '\n')
		fail("a job is not whole");
	f = field_of(most, channels, height, width, layout);
	make(&f, &o);
	image = transform_image_of(&plan, NULL, &(struct shard_size){height, width}, 0);
	if (transform_rows_check(&plan, &row, 1, 1, &(struct shard_size){height, width}, &err) ||
	    transform_image_check(&plan, &image, 0, &err))
		fail(err.message);
	bytes = (size_t)channels * height * width;
	image.at = in = malloc(bytes);
	out = malloc(plan.row_bytes);
	scratch = aligned_alloc(16, (transform_twin_bytes(&plan) + 15) & ~UINT64_C(15));
	if (!in || !out || !scratch || fread(in, 1, bytes, stdin) != bytes)
		fail("an image is not whole");
	transform_twin(&plan, &row, &image, out, scratch);
	fwrite(out, 1, plan.row_bytes, stdout);
	free(in);
	free(out);
	free(scratch);
}

static void draw(void)
{
	struct shard_transform_options o = {.size = sizeof(o)};
	uint32_t most, height, width, view, count, rank, world;
	struct transform_image image;
	struct shard_batch batch = {0};
	struct shard_transform_row row;
	struct shard_field f;
	uint64_t seed;

	if (scanf("%u %u %u %u %u %u %lf %lf %lf %lf %lf %" SCNu64 " %u %u %" SCNu64 " %" SCNu64 " %u %u", &most,
		  &height, &width, &o.height, &o.width, &o.crop, &o.flip, &o.area_min, &o.area_max, &o.ratio_min,
		  &o.ratio_max, &seed, &rank, &world, &batch.epoch, &batch.position, &view, &count) != 18)
		fail("a job is not whole");
	f = field_of(most, 3, height, width, SHARD_HWC);
	make(&f, &o);
	plan.seed = seed;
	plan.rank = rank;
	plan.world = world;
	image = transform_image_of(&plan, NULL, &(struct shard_size){height, width}, 0);
	for (uint32_t i = 0; i < count; i++) {
		transform_draw(&plan, &image, batch.epoch, transform_position(&plan, &batch, i), view, &row);
		printf("%u %u %u %u %u\n", row.x, row.y, row.width, row.height, row.flip);
	}
}

int main(void)
{
	char job[16];

	while (scanf("%15s", job) == 1) {
		if (!strcmp(job, "transform"))
			transform();
		else if (!strcmp(job, "draw"))
			draw();
		else
			fail("no such job");
	}
	return fflush(stdout) || ferror(stdout);
}
