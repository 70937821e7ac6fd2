/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transform_loader.c - a loader whose own transform is a kernel: on a driver without a GPU, the
 * batches of shard_loader_next_device() have what the host makes of the same ones
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=cuda_launch,--wrap=cuda_map_least_bytes
 * TIMEOUT: 600
 */
#include "shard_gpu.h"
#include "shard_transform.h"
#include "tests/cuda/own_transform.h"
/* behind kernels that are compiled as C */
#include "tests/cuda/check_twin.h"
#include "tests/cuda/checking.h"

/* ---- for the control: kernels that begin on another stream, ahead of the copies ---- */

static void *other_stream;

int __real_cuda_launch(const struct cuda_device *d, void *kernel, uint32_t x, uint32_t y, uint32_t threads,
		       uint32_t shared_bytes, const void *parameter, void *stream, struct shard_error *e);
int __wrap_cuda_launch(const struct cuda_device *d, void *kernel, uint32_t x, uint32_t y, uint32_t threads,
		       uint32_t shared_bytes, const void *parameter, void *stream, struct shard_error *e);

int __wrap_cuda_launch(const struct cuda_device *d, void *kernel, uint32_t x, uint32_t y, uint32_t threads,
		       uint32_t shared_bytes, const void *parameter, void *stream, struct shard_error *e)
{
	return __real_cuda_launch(d, kernel, x, y, threads, shared_bytes, parameter,
				  other_stream ? other_stream : stream, e);
}

/* ---- short records, which the GPU is to read in the page cache ---- */

static bool reads_short;

uint64_t __real_cuda_map_least_bytes(void);
uint64_t __wrap_cuda_map_least_bytes(void);

uint64_t __wrap_cuda_map_least_bytes(void)
{
	return reads_short ? 1 : __real_cuda_map_least_bytes();
}

/* ---- the same numbers ---- */

TEST(batches_come_transformed_and_nobody_writes_to_them_while_they_are_lent)
{
	static const uint32_t dtypes[] = {SHARD_F16, SHARD_BF16, SHARD_F32, SHARD_U8};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned i = 0; i < 24; i++) {
		struct shard_transform_options o =
			imagenet(i % 3, dtypes[i / 3 % 4], i % 2 ? SHARD_HWC : SHARD_CHW, i < 12 ? 24 : 17);
		struct shard_loader_options lo = {.batch_records = 7, .tail = SHARD_KEEP, .order.seed = i};
		struct transforming f;

		STORY("crop %u, dtype %u, layout %u, side %u", o.crop, o.dtype, o.layout, o.height);
		own_open(&f, lo, &o, i);
		fake->seed(i, 500);
		own_steps(&f, 20);
		CHECK_SOUND_TRAINING();
		own_close(&f);
	}
}

TEST(batches_of_a_pool_come_transformed)
{
	for (unsigned i = 0; i < 12; i++) {
		struct shard_transform_options o = imagenet(i % 3, SHARD_F16, SHARD_CHW, 24);
		struct shard_loader_options lo = {.batch_records = 7,
						  .tail = SHARD_KEEP,
						  .order.seed = i,
						  .order.shuffle = SHARD_SHUFFLE_WINDOWS,
						  .order.run_records = 3,
						  .order.window_runs = 1,
						  .order.lane_count = 3};
		struct transforming f;

		STORY("round %u, crop %u", i, o.crop);
		open_photos(40, SHARD_RAW, shards, COUNT(shards));
		lo.gpu.pool_bytes = i % 3 == 2 ? SHARD_POOL_ALL : least_pool(lo);
		own_open(&f, lo, &o, i);
		gather_twin_open();
		fake->seed(i, 300);
		own_steps(&f, 20);
		CHECK_SOUND_TRAINING();
		own_close(&f);
	}
}

/* A record that the GPU finds damaged is repaired, and then it is transformed. */
TEST(what_takes_the_place_of_damage_comes_transformed)
{
	static const uint64_t one_shard[] = {103};

	reads_short = true;
	for (uint32_t how = SHARD_CORRUPT_SUBSTITUTE; how <= SHARD_CORRUPT_MASK; how++) {
		struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_F16, SHARD_CHW, 24);
		struct shard_loader_options lo = {.batch_records = 7, .repair.on_corrupt = how, .order.seed = how};
		struct shard_loader_stats s;
		struct transforming f;

		STORY("on_corrupt %u", how);
		open_photos(40, SHARD_RAW, one_shard, 1);
		damage(0, 17);
		damage(0, 60);
		reopen(NULL);
		own_open(&f, lo, &o, how);
		check_twin_open();
		begin_checked(f.t.l, f.t.stream);
		fake->seed(how, 300);
		own_steps(&f, 2 * 15);
		CHECK_SOUND_TRAINING();
		shard_loader_stats(f.t.l, &s);
		CHECK(s.device_checked_count > record_total);
		CHECK(s.substituted_count + s.masked_count >= 2);
		CHECK_EQ(s.recopied_count, 0);
		own_close(&f);
		drop_dataset();
	}
	reads_short = false;
}

/* What the trainer reads lives as long as it reads, also behind a close. */
TEST(a_close_waits_for_who_reads_results)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_CENTER, SHARD_F16, SHARD_CHW, 24);
	struct shard_loader_options lo = {.batch_records = 7};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned i = 0; i < 6; i++) {
		struct transforming f;

		own_open(&f, lo, &o, i);
		fake->seed(i, 20000);
		own_step(&f);
		own_step(&f);
		close_loader(f.t.l);
		wanted.o.transform = NULL;
		f.t.l = loader_of(&wanted); /* for transforming_close() */
		fake->settle();
		CHECK_SOUND_TRAINING();
		own_close(&f);
	}
}

/* ---- masks and boxes ---- */

/* Weights become a box, in a group of its own or beside the image. */
static void open_boxes(uint32_t group)
{
	schema = photo_schema(40, SHARD_RAW);
	schema.field[PHOTO_WEIGHT].group = group;
	schema.field[PHOTO_WEIGHT].semantic = SHARD_BOXES;
	schema.field[PHOTO_WEIGHT].ndim = 2;
	schema.field[PHOTO_WEIGHT].shape[0] = 1;
	schema.field[PHOTO_WEIGHT].shape[1] = 4;
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	make_dataset("boxes", sizes, COUNT(sizes));
}

/* What lies at `at` shall be these bytes. */
static void compare_bytes(struct transforming *f, uint64_t at, const struct shard_rows *want, uint32_t rows)
{
	struct comparison *k = &comparisons[f->launched++ % OUTPUTS];
	void *arguments[] = {&k, &at};

	k->at = at;
	k->bytes = rows * want->stride;
	memcpy(k->want, want->data, k->bytes);
	CU_OK(cu.cuLaunchKernel(f->compare, 1, 1, 1, 1, 1, 1, 0, f->t.stream, arguments, NULL));
}

/* The boxes of a GPU's batch are those of a loader that transforms on the CPU. */
TEST(boxes_follow_images_that_a_kernel_transforms)
{
	for (uint32_t group = 0; group < 2; group++) {
		struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_F32, SHARD_CHW, 24);
		struct shard_loader_transform own = {
			.size = sizeof(own), .views = VIEWS, .field = "image", .options = &o};
		struct shard_loader_options lo = {.batch_records = 7, .tail = SHARD_KEEP};
		struct transforming f;
		struct shard_loader *cpu;

		STORY("group %u", group);
		open_boxes(group);
		own_open(&f, lo, &o, group + 1);
		lo = wanted.o;
		lo.gpu.device = 0;
		lo.gpu.stream = NULL;
		lo.transform = &own;
		CHECK_OK(shard_loader_open(&cpu, ds, &lo, &fixture_err));
		for (int i = 0; i < 30; i++) {
			struct shard_batch there, here;
			int rc = shard_loader_next_device(f.t.l, f.t.stream, &there, &err);

			CHECK_EQ(shard_loader_next(cpu, &here, &err), rc);
			if (rc == SHARD_END)
				continue;
			CHECK_EQ(rc, SHARD_OK);
			CHECK_EQ(there.field[PHOTO_WEIGHT].stride, VIEWS * 16);
			compare_bytes(&f, (uintptr_t)there.field[PHOTO_WEIGHT].data, &here.field[PHOTO_WEIGHT],
				      here.record_count);
			compare_bytes(&f, (uintptr_t)there.field[PHOTO_IMAGE].data, &here.field[PHOTO_IMAGE],
				      here.record_count);
			CHECK_OK(shard_loader_release_after(f.t.l, &there, f.t.stream, &fixture_err));
			CHECK_OK(shard_loader_release(cpu, &here, &fixture_err));
			if (i % 4 == 3)
				fake->settle();
		}
		fake->settle();
		CHECK_SOUND_TRAINING();
		shard_loader_close(cpu);
		own_close(&f);
	}
}

/* ---- what is refused ---- */

TEST(a_pool_cannot_have_boxes_that_follow)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_CENTER, SHARD_F32, SHARD_CHW, 24);
	struct shard_loader_transform own = {.size = sizeof(own), .field = "image", .options = &o};
	struct shard_loader_options lo = {
		.size = sizeof(lo), .batch_records = 7, .gpu.pool_bytes = SHARD_POOL_ALL, .transform = &own};
	struct shard_loader *l;

	open_boxes(1);
	CHECK_EQ(shard_loader_open(&l, ds, &lo, &err), SHARD_E_UNSUPPORTED);
	CHECK_STR(err.message, "options: the dataset has masks or boxes, which have to follow the images, and a pool "
			       "keeps them as they are; leave them out of `fields`, or set gpu.pool_bytes to 0");
	lo.fields = 3;
	CHECK_OK(shard_loader_open(&l, ds, &lo, &fixture_err));
	shard_loader_close(l);
}

/* On a GPU and with a pool as in host memory; what is named comes as it is stored. */
TEST(a_field_that_might_be_boxes_is_refused_on_every_way_to_a_batch)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_CENTER, SHARD_F32, SHARD_CHW, 24);
	const char *name = "weight";

	open_boxes(1);
	schema.field[PHOTO_WEIGHT].semantic = SHARD_SEMANTIC_NONE;
	make_dataset("doubts", sizes, COUNT(sizes));
	for (int way = 0; way < 3; way++) {
		struct shard_loader_transform own = {.size = sizeof(own), .field = "image", .options = &o};
		struct shard_loader_options lo = {.size = sizeof(lo),
						  .batch_records = 7,
						  .gpu.device = way == 1 ? SHARD_GPU_OF_STREAM : 0,
						  .gpu.pool_bytes = way == 2 ? SHARD_POOL_ALL : 0,
						  .transform = &own};
		struct shard_loader *l;

		STORY("%s", way ? way == 1 ? "a GPU" : "a pool" : "the host");
		CHECK_EQ(shard_loader_open(&l, ds, &lo, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, "'weight' f32[1,4] (rows of 4 numbers, as boxes have)"));
		own.as_stored = &name;
		own.as_stored_count = 1;
		CHECK_OK(shard_loader_open(&l, ds, &lo, &fixture_err));
		shard_loader_close(l);
	}
}

TEST(host_batches_of_it_are_refused)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_CENTER, SHARD_F16, SHARD_CHW, 24);
	struct shard_loader_options lo = {.batch_records = 7};
	struct transforming f;
	struct shard_batch b;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	own_open(&f, lo, &o, 1);
	CHECK_EQ(shard_loader_next(f.t.l, &b, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "this loader transforms images on its GPU and delivers batches there, with "
			       "shard_loader_next_device(); leave gpu at 0 to transform on the CPU");
	own_steps(&f, 3);
	CHECK_SOUND_TRAINING();
	own_close(&f);
}

/* A launch that fails gives its batch back, and the error repeats until a seek. */
TEST(a_kernel_that_cannot_start_is_an_error)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_CENTER, SHARD_F16, SHARD_CHW, 24);
	struct shard_loader_options lo = {.batch_records = 7};
	struct transforming f;
	struct shard_batch b;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	own_open(&f, lo, &o, 2);
	CHECK_EQ(own_step(&f), SHARD_OK);
	fake->settle();
	fake->fail("cuLaunchKernel", 1, 700);
	CHECK_EQ(shard_loader_next_device(f.t.l, f.t.stream, &b, &err), SHARD_E_DEVICE);
	fake->fail(NULL, 0, 0);
	CHECK_EQ(shard_loader_next_device(f.t.l, f.t.stream, &b, &err), SHARD_E_DEVICE);
	CHECK_EQ(f.t.l->device_slots.lent_count, 0);
	CHECK_OK(shard_loader_seek(f.t.l, 0, 0, &fixture_err));
	CHECK_OK(shard_loader_seek(f.host, 0, 0, &fixture_err));
	own_steps(&f, 5);
	CHECK_SOUND_TRAINING();
	own_close(&f);
}

/* ---- the control ---- */

#if !defined(__SANITIZE_THREAD__) /* such a kernel races with the copy, as it should */
TEST(kernels_that_do_not_wait_for_copies_are_noticed)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_CENTER, SHARD_F16, SHARD_CHW, 24);
	struct shard_loader_options lo = {.batch_records = 7};
	struct transforming f;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	own_open(&f, lo, &o, 1);
	CU_OK(cu.cuStreamCreate(&other_stream, 1));
	fake->seed(1, 500);
	own_steps(&f, 20);
	CHECK(gpu.complaint[0]);
	CU_OK(cu.cuStreamDestroy(other_stream));
	other_stream = NULL;
	gpu.complaint[0] = 0;
	own_close(&f);
}
#endif

TEST_MAIN()
