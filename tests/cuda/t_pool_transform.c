/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_pool_transform.c - batches of a pool are transformed to the numbers of shard_transform_host(),
 * bit for bit
 *
 * The host's batches come from a loader in host memory, with the same windows.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill
 * TIMEOUT: 600
 */
#include "shard_gpu.h"
#include "shard_transform.h"
#include "tests/cuda/pooling.h"
#include "tests/cuda/transforming.h"

static struct shard_error err;

static const struct shard_loader_options windows = {.batch_records = 7,
						    .tail = SHARD_KEEP,
						    .order.shuffle = SHARD_SHUFFLE_WINDOWS,
						    .order.run_records = 3,
						    .order.window_runs = 1,
						    .order.lane_count = 3};

static void open_transforming(struct transforming *f, struct shard_loader_options o,
			      const struct shard_transform_options *transform, uint32_t rows, unsigned seed)
{
	if (!o.gpu.pool_bytes)
		o.gpu.pool_bytes = seed % 3 == 2 ? SHARD_POOL_ALL : least_pool(o);
	transforming_open(f, o, transform, rows, (enum stream_kind)(seed % STREAM_KINDS), seed);
	gather_twin_open();
	fake->seed(seed, (unsigned[]){300, 0, 1000}[seed % 3]);
}

static void close_transforming(struct transforming *f)
{
	fake->settle();
	CHECK_SOUND_TRAINING();
	transforming_close(f);
	trainer_check_clean();
}

/* Records of 4801 bytes: images lie at odd addresses. */
static void open_odd_photos(void)
{
	schema = photo_schema(40, SHARD_RAW);
	schema.group[0].align_log2 = 0;
	schema.group[0].stride = schema.field[0].stride = schema.group[0].record_bytes + 1;
	make_dataset("odd", shards, COUNT(shards));
}

static void open_kind(unsigned kind)
{
	if (kind == 0)
		open_photos(40, SHARD_RAW, shards, COUNT(shards));
	else if (kind == 1)
		open_odd_photos();
	else
		open_large_photos();
}

/* ---- the same numbers ---- */

TEST(the_gpu_makes_of_the_pool_what_the_host_makes_of_batches)
{
	static const uint32_t dtypes[] = {SHARD_F16, SHARD_U8, SHARD_F32};

	for (unsigned i = 0; i < 27; i++) {
		struct shard_transform_options o = imagenet(i % 3, dtypes[i / 3 % 3], i % 2 ? SHARD_HWC : SHARD_CHW,
							    (uint32_t[]){24, 17, 40}[i / 2 % 3]);
		struct shard_loader_options lo = windows;
		struct transforming f;

		if (i % 9 == 0)
			open_kind(i / 9);
		STORY("kind %u, crop %u, dtype %u, layout %u, side %u", i / 9, o.crop, o.dtype, o.layout, o.height);
		lo.order.seed = i;
		open_transforming(&f, lo, &o, 7, i);
		transforming_steps(&f, 85); /* two epochs and a bit */
		close_transforming(&f);
	}
}

/*
 * Ranks, padding, records that are damaged and become others; with labels and flags as the host has
 * them.
 */
TEST(ranks_padding_and_damaged_records)
{
	struct shard_dataset_options first = {.size = sizeof(first)};

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	damage_record(&folder, 0, 0, 3 * schema.group[0].stride + 70);
	damage_record(&folder, 3, 0, 7 * schema.group[0].stride);
	for (unsigned i = 0; i < 12; i++) {
		struct shard_transform_options o = imagenet(i % 3, SHARD_F16, SHARD_CHW, 24);
		struct shard_loader_options lo = windows;
		struct transforming f;

		STORY("round %u", i);
		reopen(&first);
		lo.order.seed = i;
		lo.tail = SHARD_PAD;
		lo.world = 1 + i % 3;
		lo.rank = i % lo.world;
		lo.repair.on_corrupt = i % 2 ? SHARD_CORRUPT_MASK : SHARD_CORRUPT_SUBSTITUTE;
		open_transforming(&f, lo, &o, 7, i / 2);
		for (unsigned step = 0; step < 45 && !wanted.complaint[0]; step++) {
			struct shard_batch there, here;
			uint64_t to = f.output[f.launched % OUTPUTS];
			int rc = shard_loader_next(f.host, &here, &err);

			CHECK_EQ(shard_loader_next_device(f.t.l, f.t.stream, &there, &err), rc);
			if (rc)
				continue;
			CHECK_OK(shard_transform_launch(f.there, &there, NULL, 0, f.t.stream, (void *)(uintptr_t)to,
							&err));
			transforming_compare(&f, &here, NULL, 0, to);
			fake->settle();
			CHECK(there.epoch == here.epoch && there.position == here.position &&
			      there.record_count == here.record_count);
			CHECK_MEM(there.record, here.record, here.record_count * sizeof(*here.record));
			CHECK_MEM(there.row_flags, here.row_flags, here.record_count);
			for (uint32_t row = 0; row < here.record_count; row++) {
				const struct shard_rows *got = &there.field[PHOTO_LABEL],
							*want = &here.field[PHOTO_LABEL];

				CHECK_EQ(got->stride, want->stride);
				CHECK_MEM(fake->at((uintptr_t)got->data + row * got->stride),
					  (const uint8_t *)want->data + row * want->stride, 8);
			}
			CHECK_OK(shard_loader_release_after(f.t.l, &there, f.t.stream, &err));
			CHECK_OK(shard_loader_release(f.host, &here, &err));
		}
		close_transforming(&f);
	}
}

/* Views of any rows, more of them than one kernel takes; batches that are kept meanwhile. */
TEST(rows_of_the_callers_choice)
{
	static struct shard_transform_row rows[700];
	struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_BF16, SHARD_CHW, 8);
	struct prng p = {3};

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned i = 0; i < 700; i++) {
		rows[i] = (struct shard_transform_row){.from = (uint32_t)prng_below(&p, 7),
						       .flip = i % 3 == 0,
						       .x = i % 20,
						       .y = i % 13,
						       .width = 1 + i % 20,
						       .height = 1 + i % 27};
	}
	for (unsigned seed = 0; seed < 3; seed++) {
		struct transforming f;

		STORY("seed %u", seed);
		open_transforming(&f, windows, &o, 700, seed);
		for (unsigned i = 0; i < 12; i++) {
			if (i % (OUTPUTS / 4) == 0)
				fake->settle();
			CHECK_EQ(transforming_step(&f, rows, i % 2 ? 700 : 1, 0), SHARD_OK);
		}
		close_transforming(&f);
	}
}

/* The second kernel's rows are the batch's last. */
TEST(a_batch_of_more_rows_than_a_kernel_takes)
{
	struct shard_transform_options o = imagenet(SHARD_CROP_RANDOM, SHARD_F16, SHARD_CHW, 8);
	struct transforming f;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	open_transforming(&f,
			  (struct shard_loader_options){.batch_records = TOTAL,
							.tail = SHARD_KEEP,
							.order.shuffle = SHARD_SHUFFLE_GLOBAL,
							.gpu.pool_bytes = SHARD_POOL_ALL},
			  &o, TOTAL, 1);
	for (unsigned i = 0; i < 5; i++) {
		fake->settle();
		transforming_step(&f, NULL, 0, 0);
	}
	close_transforming(&f);
}

/* ---- resumed ---- */

TEST(a_job_that_goes_on_sees_what_it_would_have_seen)
{
	char token[SHARD_TOKEN_BYTES];

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned seed = 0; seed < 6; seed++) {
		struct shard_transform_options o = imagenet(SHARD_CROP_RESIZED, SHARD_F16, SHARD_CHW, 24);
		struct shard_loader_options lo = windows;
		struct transforming f;

		STORY("seed %u", seed);
		o.pixels = seed % 4; /* the token names them */
		open_transforming(&f, lo, &o, 7, seed);
		transforming_steps(&f, 17);
		fake->settle();
		shard_loader_token(f.t.l, token);
		CHECK_OK(shard_loader_seek(f.t.l, 3, 11, &err));
		CHECK_OK(shard_loader_seek(f.host, 3, 11, &err));
		transforming_steps(&f, 6);
		fake->settle();
		CHECK_OK(shard_loader_resume(f.t.l, token, &err));
		CHECK_OK(shard_loader_resume(f.host, token, &err));
		transforming_steps(&f, 7);
		close_transforming(&f);
		lo.order.shuffle = lo.order.run_records = lo.order.window_runs = lo.order.lane_count =
			0; /* as the token says */
		lo.gpu.pool_bytes = SHARD_POOL_ALL;
		open_transforming(&f, lo, &o, 7, seed);
		transforming_steps(&f, seed % 2 ? 3 : 0);
		fake->settle();
		CHECK_OK(shard_loader_resume(f.t.l, token, &err));
		CHECK_OK(shard_loader_resume(f.host, token, &err));
		transforming_steps(&f, 30);
		close_transforming(&f);
	}
}

TEST_MAIN()
