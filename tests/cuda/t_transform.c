/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transform.c - transforming batches on a driver without a GPU: the host's numbers, in the right
 * order, and what is refused
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill
 * TIMEOUT: 600
 */
#include "shard_gpu.h"
#include "shard_transform.h"
#include "tests/child.h"
#include "tests/cuda/transforming.h"

static struct shard_error err;

/* ---- the same numbers ---- */

TEST(the_gpu_makes_what_the_host_makes)
{
	static const uint32_t dtypes[] = {SHARD_F16, SHARD_BF16, SHARD_F32, SHARD_U8};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (uint32_t i = 0; i < 24; i++) {
		struct shard_transform_options o =
			imagenet(i % 3, dtypes[i / 3 % 4], i % 2 ? SHARD_HWC : SHARD_CHW, i < 12 ? 24 : 17);
		struct shard_loader_options lo = {.batch_records = 9, .tail = SHARD_KEEP, .order.seed = i};
		struct transforming f;

		STORY("crop %u, dtype %u, layout %u, side %u", o.crop, o.dtype, o.layout, o.height);
		transforming_open(&f, lo, &o, 9, (enum stream_kind)(i % STREAM_KINDS), i);
		fake->seed(i, 500);
		transforming_steps(&f, 14);
		fake->settle();
		CHECK_SOUND_TRAINING();
		transforming_close(&f);
		trainer_check_clean();
	}
}

/* Small records are an array of the field alone, and lie on no multiple of anything. */
TEST(small_images_and_outputs_on_odd_addresses)
{
	open_photos(11, SHARD_RAW, sizes, COUNT(sizes));
	for (uint32_t shift = 0; shift < 16; shift += 2) {
		struct shard_transform_options o = imagenet(shift / 2 % 3, SHARD_F16, SHARD_CHW, 8);
		struct transforming f;

		STORY("shift %u", shift);
		transforming_open(&f, (struct shard_loader_options){.batch_records = 9}, &o, 9, NON_BLOCKING, shift);
		for (int i = 0; i < 4; i++)
			CHECK_EQ(transforming_step(&f, NULL, 0, shift), SHARD_OK);
		fake->settle();
		CHECK_SOUND_TRAINING();
		transforming_close(&f);
		trainer_check_clean();
	}
}

/* Two views of each row, rows in any order and more of them than one kernel takes. */
TEST(rows_of_the_callers_choice)
{
	static struct shard_transform_row rows[700];
	struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_BF16, SHARD_CHW, 8);
	struct transforming f;
	struct prng p = {3};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	transforming_open(&f, (struct shard_loader_options){.batch_records = 9}, &o, 700, BLOCKING, 3);
	for (unsigned i = 0; i < 700; i++) {
		rows[i] = (struct shard_transform_row){.from = (uint32_t)prng_below(&p, 9),
						       .flip = i % 3 == 0,
						       .x = i % 20,
						       .y = i % 13,
						       .width = 1 + i % 20,
						       .height = 1 + i % 27};
	}
	fake->seed(3, 300);
	fake->reset();
	CHECK_EQ(transforming_step(&f, rows, 700, 0), SHARD_OK);
	CHECK_EQ(fake->count("cuLaunchKernel"), 4); /* 256 + 256 + 188, and the comparison */
	CHECK_EQ(transforming_step(&f, rows, 256, 0), SHARD_OK);
	CHECK_EQ(transforming_step(&f, rows, 1, 0), SHARD_OK);
	CHECK_EQ(transforming_step(&f, rows, 0, 0), SHARD_OK);
	CHECK_EQ(fake->count("cuLaunchKernel"), 4 + 2 + 2 + 1);
	fake->settle();
	CHECK_SOUND_TRAINING();
	transforming_close(&f);
	trainer_check_clean();
}

/* ---- what is drawn ---- */

static bool same_row(const struct shard_transform_row *a, const struct shard_transform_row *b)
{
	return a->flip == b->flip && a->x == b->x && a->y == b->y && a->width == b->width && a->height == b->height;
}

/*
 * The row at a position is drawn the same by every world, batch size and rank, and behind a seek;
 * another view is another.
 */
TEST(draws_belong_to_positions)
{
	static struct shard_transform_row wanted_row[128], other[64], row[64];
	struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_F32, SHARD_CHW, 24);
	struct shard_loader_options lo = {.size = sizeof(lo), .batch_records = 50, .order.seed = 5};
	struct shard_loader *l;
	struct shard_transform *f;
	struct shard_batch b;
	unsigned differ = 0;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	CHECK_OK(shard_loader_open(&l, ds, &lo, &fixture_err));
	CHECK_OK(shard_transform_open(&f, l, "image", &o, &fixture_err));
	for (unsigned step = 0; step < 2; step++) {
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		shard_transform_draw(f, &b, 0, wanted_row + 50 * step);
		shard_transform_draw(f, &b, 1, other);
		for (unsigned i = 0; i < 50; i++)
			differ += !same_row(&wanted_row[50 * step + i], &other[i]);
		CHECK_EQ(wanted_row[50 * step + 49].from, 49);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK(differ > 95);
	shard_transform_close(f);
	shard_loader_close(l);
	for (uint32_t rank = 0; rank < 3; rank++) {
		lo = (struct shard_loader_options){
			.size = sizeof(lo), .batch_records = 7, .order.seed = 5, .rank = rank, .world = 3};
		CHECK_OK(shard_loader_open(&l, ds, &lo, &fixture_err));
		CHECK_OK(shard_transform_open(&f, l, "image", &o, &fixture_err));
		CHECK_OK(shard_loader_seek(l, 0, 10, &fixture_err));
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		shard_transform_draw(f, &b, 0, row);
		for (uint32_t i = 0; i < 7; i++) {
			uint32_t at = 10 + (rank + 3 - 10 % 3) % 3 + 3 * i;

			STORY("rank %u, position %u", rank, at);
			CHECK(same_row(&row[i], &wanted_row[at]));
		}
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		shard_transform_close(f);
		shard_loader_close(l);
	}
}

/* ---- what it costs ---- */

TEST(one_kernel_a_batch_and_nothing_else)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RANDOM, SHARD_F16, SHARD_CHW, 32);
	struct transforming f;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	transforming_open(&f, (struct shard_loader_options){.batch_records = 9}, &o, 9, NON_BLOCKING, 1);
	CHECK_EQ(fake->count("cuModuleLoadDataEx"), 0);
	transforming_steps(&f, 8);
	CHECK_EQ(fake->count("cuModuleLoadDataEx"), 1);
	fake->reset();
	transforming_steps(&f, 3);
	CHECK_EQ(fake->count("cuLaunchKernel"), 3 + 3); /* with the comparisons */
	CHECK_EQ(fake->count("cu*Synchronize"), 0);
	CHECK_EQ(fake->count("cuMemAlloc") + fake->count("cuModuleLoadDataEx") + fake->count("cuModuleGetFunction") +
			 fake->count("cuEventCreate") + fake->count("cuStreamCreate") +
			 fake->count("cuMemHostRegister"),
		 0);
	fake->settle();
	CHECK_SOUND_TRAINING();
	transforming_close(&f);
	trainer_check_clean();
}

/* ---- kernels are compiled once ---- */

static struct transforming shared;

static void *launch_some(void *context)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_F16, SHARD_CHW, 32);
	const struct shard_batch *b = context;
	struct shard_error why;
	struct shard_transform *more;

	if (shard_transform_open(&more, shared.t.l, "image", &o, &why) ||
	    shard_transform_launch(more, b, NULL, 0, shared.t.stream, TO(shared), &why))
		return more;
	shard_transform_close(more);
	return NULL;
}

/*
 * Handles of one context, in threads too, share a module, which lives as long as the last of them.
 */
TEST(handles_of_one_context_share_their_kernels)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RANDOM, SHARD_F16, SHARD_CHW, 32);
	struct shard_transform *other;
	struct shard_batch b;
	pthread_t thread[4];
	void *problem;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	transforming_open(&shared, (struct shard_loader_options){.batch_records = 9}, &o, 9, NON_BLOCKING, 1);
	CHECK_OK(shard_loader_next_device(shared.t.l, shared.t.stream, &b, &fixture_err));
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, launch_some, &b), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &problem);
		CHECK(!problem);
	}
	/* all are gone, and so is what they shared */
	CHECK_EQ(fake->count("cuModuleLoadDataEx"), fake->count("cuModuleUnload"));
	fake->reset();
	CHECK_OK(shard_transform_open(&other, shared.t.l, "image", &o, &fixture_err));
	CHECK_OK(shard_transform_launch(other, &b, NULL, 0, shared.t.stream, TO(shared), &fixture_err));
	CHECK_OK(shard_transform_launch(shared.there, &b, NULL, 0, shared.t.stream, TO(shared), &fixture_err));
	CHECK_EQ(fake->count("cuModuleLoadDataEx"), 1);
	shard_transform_close(other);
	CHECK_EQ(fake->count("cuModuleUnload"), 0);
	CHECK_OK(shard_loader_release_after(shared.t.l, &b, shared.t.stream, &fixture_err));
	CHECK_OK(shard_loader_next(shared.host, &b, &fixture_err));
	CHECK_OK(shard_loader_release(shared.host, &b, &fixture_err));
	transforming_steps(&shared, 3); /* with the module that is left */
	fake->settle();
	CHECK_SOUND_TRAINING();
	transforming_close(&shared);
	CHECK_EQ(fake->count("cuModuleLoadDataEx"), 1);
	trainer_check_clean();
}

/* One of another context has its own; the fake driver would tell. */
TEST(contexts_do_not_share_kernels)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RANDOM, SHARD_F16, SHARD_CHW, 32);
	void *context, *popped, *stream;
	struct shard_loader *l;
	struct shard_transform *other;
	struct shard_batch b;
	struct transforming f;
	uint64_t to;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	transforming_open(&f, (struct shard_loader_options){.batch_records = 9}, &o, 9, NON_BLOCKING, 1);
	transforming_steps(&f, 2);
	context = fake->context(0);
	CU_OK(cu.cuCtxPushCurrent(context));
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuMemAlloc(&to, 9 * shard_transform_row_bytes(f.here)));
	l = loader_of(&wanted);
	CHECK_OK(shard_transform_open(&other, l, "image", &o, &fixture_err));
	CHECK_OK(shard_loader_next_device(l, stream, &b, &fixture_err));
	CHECK_OK(shard_transform_launch(other, &b, NULL, 0, stream, (void *)(uintptr_t)to, &fixture_err));
	CHECK_EQ(fake->count("cuModuleLoadDataEx"), 2);
	CHECK_OK(shard_loader_release_after(l, &b, stream, &fixture_err));
	shard_transform_close(other);
	close_loader(l);
	CU_OK(cu.cuMemFree(to));
	CU_OK(cu.cuStreamDestroy(stream));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	transforming_steps(&f, 2);
	fake->settle();
	CHECK_SOUND_TRAINING();
	transforming_close(&f);
	fake->drop_context(context);
	trainer_check_clean();
}

/* ---- shared memory ---- */

/* A line of such images needs more than what every GPU gives, and this one has more. */
TEST(large_images_get_more_shared_memory)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_F16, SHARD_CHW, 1800);
	struct transforming f;

	open_photos(1800, SHARD_RAW, (uint64_t[]){2}, 1);
	transforming_open(&f, (struct shard_loader_options){.batch_records = 1}, &o, 1, NON_BLOCKING, 1);
	transforming_steps(&f, 2);
	fake->settle();
	CHECK_SOUND_TRAINING();
	CHECK_EQ(fake->count("cuFuncSetAttribute"), 2); /* of both kernels, at the first launch */
	transforming_close(&f);
	trainer_check_clean();
}

/* Where the GPU is known, it is known at once; other loaders may be for batches in host memory. */
TEST(images_that_are_too_large_are_refused_at_open)
{
	static const char said[] = " bytes of shared memory, and a block of this GPU has ";
	struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_F16, SHARD_CHW, 1800);
	struct shard_loader_options lo = {.size = sizeof(lo), .batch_records = 1};
	struct shard_transform *transform;
	struct shard_batch b;
	struct training t;

	open_photos(1800, SHARD_RAW, (uint64_t[]){2}, 1);
	o.height = 1; /* all lines of the image are needed for one */
	for (unsigned i = 0; i < 4; i++) {
		STORY("loader %u", i);
		lo.gpu.device = i == 1 ? SHARD_GPU(1) : i == 2 ? SHARD_GPU_OF_STREAM : 0;
		lo.gpu.pool_bytes = i == 3 ? SHARD_POOL_ALL : 0;
		training_open(&t, lo, NON_BLOCKING, 1);
		if (i) {
			CHECK_EQ(shard_transform_open(&transform, t.l, "image", &o, &err), SHARD_E_ARGUMENT);
			CHECK(strstr(err.message, said));
			CHECK(strstr(err.message, i == 3 ? "has 232448; pack" : "has 101376; pack"));
		} else {
			CHECK_OK(shard_transform_open(&transform, t.l, "image", &o, &fixture_err));
			CHECK_OK(shard_loader_next_device(t.l, t.stream, &b, &fixture_err));
			CHECK_EQ(shard_transform_launch(transform, &b, NULL, 0, t.stream, (void *)16, &err),
				 SHARD_E_ARGUMENT);
			CHECK(strstr(err.message, said));
			CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
			shard_transform_close(transform);
		}
		training_close(&t);
		trainer_check_clean();
	}
}

/* ---- what goes wrong ---- */

TEST(calls_that_are_wrong_are_told_so)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_CENTER, SHARD_F16, SHARD_CHW, 32);
	struct shard_transform_row row = {.width = 32, .height = 32};
	struct shard_batch here, there;
	void *context, *popped, *stream;
	struct transforming f;
	uint8_t out[16];

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	transforming_open(&f, (struct shard_loader_options){.batch_records = 9}, &o, 9, NON_BLOCKING, 0);
	CHECK_OK(shard_loader_next_device(f.t.l, f.t.stream, &there, &fixture_err));
	CHECK_OK(shard_loader_next(f.host, &here, &fixture_err));
	CHECK_EQ(shard_transform_launch(f.there, &here, NULL, 0, f.t.stream, TO(f), &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "this batch is in host memory; transform it with shard_transform_host(), or take it "
			       "with shard_loader_next_device()");
	CHECK_EQ(shard_transform_host(f.here, &there, NULL, 0, out, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "this batch is on a GPU; transform it with shard_transform_launch()");
	CHECK_EQ(shard_transform_launch(f.there, &there, NULL, 0, f.t.stream, (void *)(uintptr_t)(f.output[0] + 1),
					&err),
		 SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "; must be at a multiple of 2, the bytes of a number"));
	row.from = 9;
	CHECK_EQ(shard_transform_launch(f.there, &there, &row, 1, f.t.stream, TO(f), &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "rows: row 0 is from record 9; must be below 9, the records of the batch");
	row.from = 0;
	CHECK_OK(shard_transform_launch(f.there, &there, &row, 1, f.t.stream, TO(f), &fixture_err));
	context = fake->context(0);
	CU_OK(cu.cuCtxPushCurrent(context));
	CU_OK(cu.cuStreamCreate(&stream, 0));
	CHECK_EQ(shard_transform_launch(f.there, &there, &row, 1, stream, TO(f), &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "belongs to another context than the batches of this loader"));
	CU_OK(cu.cuStreamDestroy(stream));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	transforming_close(&f); /* with a kernel under way, and batches lent */
	fake->drop_context(context);
	trainer_check_clean();
}

static int launch_in_child(struct transforming *f, const struct shard_batch *b)
{
	if (shard_transform_launch(f->there, b, NULL, 0, f->t.stream, (void *)(uintptr_t)f->output[0], &err) ==
	    SHARD_OK)
		return 1;
	shard_transform_close(f->there);
	shard_transform_close(f->here);
	return 0;
}

TEST(a_child_can_only_close)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_F16, SHARD_CHW, 32);
	struct shard_batch b;
	struct transforming f;
	pid_t pid;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	transforming_open(&f, (struct shard_loader_options){.batch_records = 9}, &o, 9, NON_BLOCKING, 0);
	CHECK_OK(shard_loader_next_device(f.t.l, f.t.stream, &b, &fixture_err));
	CHECK_OK(shard_transform_launch(f.there, &b, NULL, 0, f.t.stream, TO(f), &fixture_err));
	fake->settle();
	if (child_begin(&pid, 20))
		_exit(launch_in_child(&f, &b));
	CHECK_EQ(child_end(pid), 0);
	CHECK_OK(shard_transform_launch(f.there, &b, NULL, 0, f.t.stream, TO(f), &fixture_err));
	transforming_close(&f);
	trainer_check_clean();
}

TEST_MAIN()
