/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transform_whole.c - images that differ in size, transformed on a driver without a GPU: by hand,
 * by the loader's own kernel, and from a pool
 *
 * That the host makes the right numbers of such images, t_whole shows.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=transform_put_row
 * TIMEOUT: 600
 */
#include "libshard/transform/transform.h"
#include "tests/cuda/own_transform.h"
#include "tests/store/whole.h"

#define MOST 1600u /* pixels */

/* ---- for the control: all images are taken to be as wide as the first of a launch ---- */

static bool mistaken;

void __real_transform_put_row(const struct transform_plan *p, struct transform_call *c, uint32_t i,
			      const struct shard_transform_row *row, uint32_t image_width, uint32_t from);
void __wrap_transform_put_row(const struct transform_plan *p, struct transform_call *c, uint32_t i,
			      const struct shard_transform_row *row, uint32_t image_width, uint32_t from);

void __wrap_transform_put_row(const struct transform_plan *p, struct transform_call *c, uint32_t i,
			      const struct shard_transform_row *row, uint32_t image_width, uint32_t from)
{
	__real_transform_put_row(p, c, i, row, mistaken && i ? c->line_pixels[0] : image_width, from);
}

/* ---- datasets ---- */

static void open_whole(const struct whole_lie *lies, size_t count)
{
	drop_dataset();
	schema = whole_schema(MOST, SHARD_RAW);
	whole_lies = lies;
	whole_lie_count = count;
	new_folder(&folder, "whole");
	write_whole(folder.text, &schema, TOTAL);
	record_total = TOTAL;
	reopen(NULL);
}

static struct shard_transform_options asked_of(unsigned i)
{
	static const uint32_t dtypes[] = {SHARD_F16, SHARD_U8, SHARD_F32};
	struct shard_transform_options o =
		imagenet(SHARD_CROP_RESIZED, dtypes[i % 3], i % 2 ? SHARD_HWC : SHARD_CHW, i % 4 ? 24 : 17);

	o.pixels = 1 + i / 2 % 3;
	if (i % 5 == 4) { /* nothing is resized: the smallest output, which lies within every image */
		o.crop = i % 2 ? SHARD_CROP_CENTER : SHARD_CROP_RANDOM;
		o.height = o.width = 1;
	}
	return o;
}

static struct shard_loader_options windows_of(unsigned i)
{
	struct shard_loader_options o = {.batch_records = 7,
					 .tail = SHARD_KEEP,
					 .order.seed = i,
					 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
					 .order.run_records = 3,
					 .order.window_runs = 1,
					 .order.lane_count = 3};

	return o;
}

/* ---- the same numbers ---- */

TEST(batches_are_transformed_by_hand)
{
	open_whole(NULL, 0);
	for (unsigned i = 0; i < 15; i++) {
		struct shard_transform_options o = asked_of(i);
		struct transforming f;

		STORY("round %u", i);
		transforming_open(&f, windows_of(i), &o, 7, (enum stream_kind)(i % STREAM_KINDS), i);
		fake->seed(i, 500);
		transforming_steps(&f, 60);
		fake->settle();
		CHECK_SOUND_TRAINING();
		transforming_close(&f);
		trainer_check_clean();
	}
}

/* A launch of more rows than a kernel takes, each laid out for the parts that it has. */
TEST(many_rows_of_the_callers_choice)
{
	static struct shard_transform_row rows[700];
	struct shard_transform_options o = asked_of(1);
	struct transforming f;
	struct shard_batch b;

	open_whole(NULL, 0);
	transforming_open(&f, windows_of(3), &o, 700, LEGACY, 3);
	for (unsigned step = 0; step < 6; step++) {
		struct shard_batch there;
		uint64_t to = f.output[f.launched % OUTPUTS];

		CHECK_OK(shard_loader_next(f.host, &b, &fixture_err));
		CHECK_OK(shard_loader_next_device(f.t.l, f.t.stream, &there, &fixture_err));
		CHECK_MEM(there.field[WHOLE_IMAGE].size, b.field[WHOLE_IMAGE].size, 7 * sizeof(struct shard_size));
		for (unsigned i = 0; i < 700; i++) {
			struct shard_size size = b.field[WHOLE_IMAGE].size[i / 100];

			rows[i] = (struct shard_transform_row){.from = i / 100,
							       .flip = i % 3 == 0,
							       .x = i % size.width,
							       .y = i % size.height,
							       .width = size.width - i % size.width,
							       .height = size.height - i % size.height};
		}
		CHECK_OK(shard_transform_launch(f.there, &there, rows, 700, f.t.stream, (void *)(uintptr_t)to,
						&fixture_err));
		transforming_compare(&f, &b, rows, 700, to);
		fake->settle();
		rows[650].height++;
		CHECK_EQ(shard_transform_launch(f.there, &there, rows, 700, f.t.stream, (void *)(uintptr_t)to, &err),
			 SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, "rows: row 650 is "));
		CHECK_OK(shard_loader_release(f.host, &b, &fixture_err));
		CHECK_OK(shard_loader_release_after(f.t.l, &there, f.t.stream, &fixture_err));
	}
	CHECK_SOUND_TRAINING();
	transforming_close(&f);
	trainer_check_clean();
}

/* A part of the dataset or all of it; some records are masked or replaced. */
TEST(batches_of_a_pool_come_transformed)
{
	static const struct whole_lie lies[] = {{5, 3, 3, 10}, {100, 0, 4, 0}, {101, 1, 1601, 1601}};

	open_whole(lies, COUNT(lies));
	for (unsigned i = 0; i < 18; i++) {
		struct shard_transform_options o = asked_of(i);
		struct shard_loader_options lo = windows_of(i);
		struct transforming f;

		lo.fields = 1 << WHOLE_IMAGE | 1 << WHOLE_LABEL; /* boxes cannot follow in a pool */
		lo.repair.on_corrupt = i / 2 % 2 ? SHARD_CORRUPT_MASK : SHARD_CORRUPT_SUBSTITUTE;
		STORY("round %u, crop %u", i, o.crop);
		if (i % 6 < 4)
			lo.gpu.pool_bytes = i % 3 == 2 ? SHARD_POOL_ALL : least_pool(lo);
		own_open(&f, lo, &o, i);
		gather_twin_open();
		fake->seed(i, 300);
		own_steps(&f, 80); /* two epochs */
		CHECK_SOUND_TRAINING();
		own_close(&f);
	}
}

/* ---- what is refused ---- */

TEST(what_a_kernel_cannot_do_is_refused)
{
	struct shard_transform_options o = asked_of(0);
	struct shard_loader_transform own = {.size = sizeof(own), .field = "image", .options = &o};
	struct shard_loader_options lo = windows_of(0);
	struct shard_loader *l;

	open_whole(NULL, 0);
	lo.size = sizeof(lo);
	lo.transform = &own;
	lo.gpu.pool_bytes = SHARD_POOL_ALL;
	lo.fields = 1 << WHOLE_IMAGE;
	o.width = 16000;
	CHECK_EQ(shard_loader_open(&l, ds, &lo, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "output of 17 x 16000 from images of 160 x 160: a line needs "));
}

/* The draws are known before the launch, and so is an image that is too small for them. */
TEST(an_image_that_is_smaller_than_a_crop_is_an_error)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RANDOM, SHARD_F16, SHARD_CHW, 20);
	struct shard_loader_options lo = {.batch_records = 7, .order.shuffle = SHARD_SEQUENTIAL};
	struct transforming f;
	struct shard_batch b;

	open_whole(NULL, 0);
	transforming_open(&f, lo, &o, 7, LEGACY, 0);
	CHECK_OK(shard_loader_next_device(f.t.l, f.t.stream, &b, &fixture_err));
	CHECK_EQ(shard_transform_launch(f.there, &b, NULL, 0, f.t.stream, TO(f), &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "record 0 has an image of 160 x 10, and an output of 20 x 20 cannot be cropped"));
	CHECK_OK(shard_loader_release_after(f.t.l, &b, f.t.stream, &fixture_err));
	transforming_close(&f);
	trainer_check_clean();
}

/* ---- the control ---- */

TEST(the_width_of_another_image_is_noticed)
{
	struct shard_transform_options o = asked_of(1);
	struct transforming f;

	open_whole(NULL, 0);
	mistaken = true;
	transforming_open(&f, windows_of(0), &o, 7, LEGACY, 0);
	transforming_steps(&f, 3);
	fake->settle();
	CHECK(strstr(gpu.complaint, "the GPU's numbers are not the host's"));
	mistaken = false;
	gpu.complaint[0] = 0;
	transforming_close(&f);
	trainer_check_clean();
}

TEST_MAIN()
