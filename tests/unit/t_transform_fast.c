/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transform_fast.c - transforming with vectors gives the bits of transform_twin(), and reads no
 * byte behind the image
 *
 * TIMEOUT: 300
 */
#include <sys/mman.h>

#include "libshard/transform/transform.h"
#include "tests/store/whole.h"

#define ROUNDS	  400u
#define PAGE	  4096u
#define SIDE_MOST 90u
#define BYTES	  (8 * PAGE) /* for an image of 90 x 90 */

static struct transform_plan plan;
static struct shard_size size; /* of the image */
static bool is_control;	       /* the twin gets an image whose pixels are a bit darker */

/* Memory for an image that ends where a page begins that nobody may touch. */
static uint8_t *image_at_end(uint8_t *pages, size_t bytes)
{
	return pages + BYTES - bytes;
}

static uint32_t side(struct prng *p)
{
	return 1 + (uint32_t)prng_below(p, prng_below(p, 3) ? SIDE_MOST : 8);
}

static void any_plan(struct prng *p, uint32_t round)
{
	static const uint32_t dtypes[] = {SHARD_F32, SHARD_F16, SHARD_BF16, SHARD_U8};
	struct shard_field field = {.name = "image", .dtype = SHARD_U8, .layout = SHARD_HWC, .ndim = 3};
	struct shard_transform_options o = {
		.size = sizeof(o),
		.dtype = dtypes[round % COUNT(dtypes)],
		.layout = round / 4 % 2 ? SHARD_HWC : SHARD_CHW,
		.crop = round % 7 < 2 ? SHARD_CROP_RANDOM : SHARD_CROP_RESIZED,
		.pixels = round % 5 ? SHARD_PIXELS_ROWS_FIRST : SHARD_PIXELS_PILLOW_13,
	};

	for (int c = 0; c < 3 && o.dtype != SHARD_U8; c++) {
		o.mean[c] = 0.4f + 0.03f * (float)c;
		o.std[c] = 0.22f + 0.002f * (float)c;
	}
	field.shape[0] = side(p);
	field.shape[1] = side(p);
	field.shape[2] = 3;
	field.bytes = (uint64_t)field.shape[0] * field.shape[1] * 3;
	o.height = o.crop == SHARD_CROP_RESIZED ? side(p) : 1 + (uint32_t)prng_below(p, field.shape[0]);
	o.width = o.crop == SHARD_CROP_RESIZED ? side(p) : 1 + (uint32_t)prng_below(p, field.shape[1]);
	size = (struct shard_size){field.shape[0], field.shape[1]};
	if (round % 3 == 0) { /* images differ in size, and this one is as long as may be */
		whole_field(p, &field, size, &size, 1);
	}
	CHECK_OK(transform_plan_make(&plan, &field, &o, &fixture_err));
}

static struct shard_transform_row any_row(struct prng *p)
{
	bool resizes = plan.crop == SHARD_CROP_RESIZED;
	struct shard_transform_row row = {.flip = (uint32_t)prng_below(p, 2)};

	row.width = resizes ? 1 + (uint32_t)prng_below(p, size.width) : plan.width;
	row.height = resizes ? 1 + (uint32_t)prng_below(p, size.height) : plan.height;
	row.x = (uint32_t)prng_below(p, size.width - row.width + 1);
	row.y = (uint32_t)prng_below(p, size.height - row.height + 1);
	return row;
}

/* How many rows of random plans differ; *done: how many the fast path took. */
static unsigned compare(unsigned *done)
{
	uint8_t *pages = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct prng p = {77};
	unsigned differ = 0;

	CHECK(pages != MAP_FAILED && !mprotect(pages + BYTES, PAGE, PROT_NONE));
	*done = 0;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		void *scratch, *twin_scratch, *got, *want;
		struct shard_transform_row row;
		struct transform_image image;
		uint8_t *pixels;
		size_t bytes;

		any_plan(&p, round);
		row = any_row(&p);
		bytes = (size_t)size.height * size.width * 3;
		pixels = image_at_end(pages, bytes);
		prng_fill(&p, pixels, bytes);
		image = transform_image_of(&plan, pixels, &size, 0);
		scratch = aligned_alloc(32, (size_t)(transform_fast_bytes(&plan) + 31) / 32 * 32);
		twin_scratch = aligned_alloc(32, (size_t)(transform_twin_bytes(&plan) + 31) / 32 * 32);
		got = calloc(1, (size_t)plan.row_bytes);
		want = calloc(1, (size_t)plan.row_bytes);
		STORY("round %u: %u x %u, part %u x %u at (%u, %u), to %u x %u", round, size.height, size.width,
		      row.height, row.width, row.y, row.x, plan.height, plan.width);
		if (transform_fast(&plan, &row, &image, got, scratch)) {
			for (size_t i = 0; is_control && i < bytes; i++)
				pixels[i] -= pixels[i] >> 6;
			transform_twin(&plan, &row, &image, want, twin_scratch);
			differ += memcmp(got, want, (size_t)plan.row_bytes) != 0;
			if (!is_control)
				CHECK_MEM(got, want, (size_t)plan.row_bytes);
			++*done;
		} else {
			CHECK(plan.crop == SHARD_CROP_RESIZED && transform_is_down_first(&plan, &row));
		}
		free(scratch);
		free(twin_scratch);
		free(got);
		free(want);
	}
	munmap(pages, BYTES + PAGE);
	return differ;
}

TEST(vectors_give_the_bits_of_the_twin)
{
	unsigned done;

	any_plan(&(struct prng){1}, 0);
	if (!transform_fast_applies(&plan))
		SKIP("this CPU has no AVX2");
	CHECK_EQ(compare(&done), 0);
	CHECK(done > ROUNDS * 3 / 4);
}

TEST(darker_pixels_are_noticed)
{
	unsigned done;

	any_plan(&(struct prng){1}, 0);
	if (!transform_fast_applies(&plan))
		SKIP("this CPU has no AVX2");
	is_control = true;
	CHECK(compare(&done) > ROUNDS / 4);
	is_control = false;
}

/* Images that are stored otherwise are not for the fast path. */
TEST(what_does_not_apply)
{
	struct shard_field planar = {
		.name = "a", .dtype = SHARD_U8, .layout = SHARD_CHW, .ndim = 3, .shape = {3, 5, 6}};
	struct shard_field gray = {.name = "a", .dtype = SHARD_U8, .layout = SHARD_HWC, .ndim = 2, .shape = {5, 6}};
	struct shard_transform_options o = {.size = sizeof(o)};

	CHECK_OK(transform_plan_make(&plan, &planar, &o, &fixture_err));
	CHECK(!transform_fast_applies(&plan));
	CHECK_OK(transform_plan_make(&plan, &gray, &o, &fixture_err));
	CHECK(!transform_fast_applies(&plan));
}

TEST_MAIN()
