/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_whole.c - images that differ in size: as they lie, transformed, and with sizes that are wrong
 *
 * What a transform makes of an image must be what it makes of a dataset whose images all have that
 * size; that is held to Pillow elsewhere.
 *
 * LDFLAGS: -Wl,--wrap=slot_sizes_take
 * TIMEOUT: 300
 */
#include "libshard/feed/feed.h"
#include "libshard/transform/transform.h"
#include "shard_transform.h"
#include "tests/load/kinds.h"
#include "tests/store/whole.h"

#define RECORDS 60u
#define MOST	1600u /* pixels: 40 x 40, and at most 160 long */

static struct path folder;
static struct shard_schema schema;
static struct shard_dataset *ds;
static struct shard_error err;

/* ---- a mistake, for the control: sizes are taken as they are ---- */

static bool trusting;

int __real_slot_sizes_take(struct row_source *source, struct slot *s, bool strict, struct shard_error *e);
int __wrap_slot_sizes_take(struct row_source *source, struct slot *s, bool strict, struct shard_error *e);

int __wrap_slot_sizes_take(struct row_source *source, struct slot *s, bool strict, struct shard_error *e)
{
	return trusting ? SHARD_OK : __real_slot_sizes_take(source, s, strict, e);
}

/* ---- datasets ---- */

static void write_schema(void)
{
	shard_dataset_close(ds);
	new_folder(&folder, "t_whole");
	write_whole(folder.text, &schema, RECORDS);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
}

static void make(uint32_t codec, const struct whole_lie *lies, size_t count)
{
	schema = whole_schema(MOST, codec);
	whole_lies = lies;
	whole_lie_count = count;
	write_schema();
}

static const uint8_t *row_of(const struct shard_rows *rows, uint32_t i)
{
	return (const uint8_t *)rows->data + i * rows->stride;
}

/* ---- as they lie ---- */

static void check_raw(const struct shard_batch *b)
{
	uint8_t record[MOST * 3];

	for (uint32_t i = 0; i < b->record_count; i++) {
		struct shard_size want = whole_size(&schema, b->record[i]), got = b->field[WHOLE_IMAGE].size[i];

		CHECK(got.height == want.height && got.width == want.width);
		whole_record(&schema, 0, b->record[i], record);
		CHECK_MEM(row_of(&b->field[WHOLE_IMAGE], i), record, sizeof(record));
	}
	CHECK(!b->field[WHOLE_SIZE].size && !b->field[WHOLE_LENGTH].size);
}

TEST(batches_say_how_large_their_images_are)
{
	uint32_t n = 0;

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		make(codec, NULL, 0);
		for (size_t kind = 0; kind < KINDS; kind++)
			for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++, n++) {
				struct shard_loader_options o = of_kind(kind);
				struct shard_loader *l;
				struct shard_batch b;

				STORY("codec %u, order %u, path %u", codec, (unsigned)kind, path);
				o.path = path;
				o.tail = SHARD_KEEP;
				o.fields = n % 2; /* all, or the images, which bring their sizes */
				CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
				while (!shard_loader_next(l, &b, &fixture_err)) {
					check_raw(&b);
					CHECK(b.field[WHOLE_SIZE].data && b.field[WHOLE_LENGTH].data);
					CHECK(!b.field[WHOLE_LABEL].data == (o.fields != 0));
					CHECK_OK(shard_loader_release(l, &b, &fixture_err));
				}
				shard_loader_close(l);
			}
	}
}

/* ---- transformed ---- */

static struct shard_transform_options asked_of(uint32_t n)
{
	static const uint32_t dtypes[] = {SHARD_U8, SHARD_F16, SHARD_F32};

	return (struct shard_transform_options){.size = sizeof(struct shard_transform_options),
						.height = 21,
						.width = 30,
						.dtype = dtypes[n % 3],
						.layout = n % 2 ? SHARD_HWC : SHARD_CHW,
						.crop = SHARD_CROP_RESIZED,
						.pixels = 1 + n % 3,
						.flip = 0.5};
}

/* The plan for a dataset whose images all have this size. */
static struct transform_plan even_plan(const struct shard_transform_options *asked, struct shard_size size,
				       const struct shard_loader_options *o)
{
	struct shard_field field = {.name = "image",
				    .dtype = SHARD_U8,
				    .layout = SHARD_HWC,
				    .ndim = 3,
				    .shape = {size.height, size.width, 3},
				    .bytes = (uint64_t)size.height * size.width * 3};
	struct transform_plan plan;

	CHECK_OK(transform_plan_make(&plan, &field, asked, &fixture_err));
	plan.seed = o->order.seed;
	plan.rank = o->rank;
	plan.world = o->world ? o->world : 1;
	return plan;
}

/* A row of a batch, all of whose views are results of the record. */
static void check_row(const struct shard_transform_options *asked, const struct shard_loader_options *o,
		      const struct shard_batch *b, uint32_t i, uint32_t views)
{
	bool masked = b->row_flags[i] & SHARD_ROW_MASKED;
	struct shard_size size = masked ? (struct shard_size){1, 1} : whole_size(&schema, b->record[i]);
	struct transform_plan plan = even_plan(asked, size, o);
	uint8_t record[MOST * 3], *want = malloc(plan.row_bytes), meta[512], boxes[16 * WHOLE_BOXES];
	void *scratch = aligned_alloc(32, (transform_twin_bytes(&plan) + 31) / 32 * 32);
	struct transform_image image = transform_image_of(&plan, record, NULL, 0);

	whole_record(&schema, 0, b->record[i], record);
	whole_record(&schema, 1, b->record[i], meta);
	if (masked)
		memset(record, 0, sizeof(record));
	for (uint32_t view = 0; view < views; view++) {
		struct shard_transform_row row;

		transform_draw_row(&plan, &image, b, i, view, &row);
		transform_twin(&plan, &row, &image, want, scratch);
		CHECK_MEM(row_of(&b->field[WHOLE_IMAGE], i) + view * plan.row_bytes, want, (size_t)plan.row_bytes);
		memset(boxes, 0, sizeof(boxes));
		if (!masked)
			transform_boxes(&plan, &row, WHOLE_BOXES, meta + schema.field[WHOLE_BOX].offset, boxes);
		CHECK_MEM(row_of(&b->field[WHOLE_BOX], i) + view * sizeof(boxes), boxes, sizeof(boxes));
	}
	free(want);
	free(scratch);
}

/* The field is one of tensors, whose images are alike. */
static void check_field(const struct shard_loader *l, const struct shard_transform_options *asked, uint32_t views)
{
	uint32_t at = views > 1, y = asked->layout == SHARD_CHW;
	struct shard_field f;

	shard_loader_field(l, WHOLE_IMAGE, &f);
	CHECK_EQ(f.kind, SHARD_TENSOR);
	CHECK_EQ(f.ragged_axes, 0);
	CHECK_EQ(f.layout, asked->layout);
	CHECK_EQ(f.ndim, 3 + at);
	CHECK(!at || f.shape[0] == views);
	CHECK(f.shape[at + y] == asked->height && f.shape[at + y + 1] == asked->width);
	CHECK_EQ(f.shape[at + (y ? 0 : 2)], 3);
}

/* Two epochs.  Returns how many rows were flagged. */
static unsigned run_transformed(const struct shard_transform_options *asked, struct shard_loader_options o,
				uint32_t views)
{
	struct shard_loader_transform to = {.size = sizeof(to), .views = views, .field = "image", .options = asked};
	unsigned flagged = 0, ends = 0;
	struct shard_loader *l;
	struct shard_batch b;

	o.transform = &to;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	check_field(l, asked, views);
	while (ends < 2) {
		int rc = shard_loader_next(l, &b, &fixture_err);

		ends += rc == SHARD_END;
		if (rc == SHARD_END)
			continue;
		CHECK_EQ(rc, SHARD_OK);
		for (uint32_t i = 0; i < b.record_count; i++) {
			check_row(asked, &o, &b, i, views);
			flagged += b.row_flags[i] != 0;
		}
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	shard_loader_close(l);
	return flagged;
}

TEST(each_image_is_transformed_with_its_own_size)
{
	uint32_t n = 0;

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		make(codec, NULL, 0);
		for (size_t kind = 0; kind < KINDS; kind++)
			for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++, n++) {
				struct shard_transform_options asked = asked_of(n);
				struct shard_loader_options o = of_kind(kind);

				STORY("codec %u, order %u, path %u", codec, (unsigned)kind, path);
				o.path = path;
				o.tail = SHARD_KEEP;
				o.batch_records = n % 2 ? 7 : RECORDS;
				CHECK_EQ(run_transformed(&asked, o, 1 + n % 2), 0);
			}
	}
}

/* By shard_transform_host(), with its own draws, and of rows that the caller names. */
TEST(batches_are_transformed_by_hand)
{
	struct shard_transform_options asked = asked_of(2);
	struct shard_loader_options o = of_kind(GLOBALLY);
	struct shard_transform_row row[RECORDS];
	struct shard_transform *t;
	struct shard_loader *l;
	struct shard_batch b, results;
	uint8_t *got;

	make(SHARD_RAW, NULL, 0);
	o.batch_records = RECORDS;
	o.fields = 1;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_OK(shard_transform_open(&t, l, "image", &asked, &fixture_err));
	got = malloc(RECORDS * shard_transform_row_bytes(t));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	for (int named = 0; named < 2; named++) {
		memset(got, 0, RECORDS * shard_transform_row_bytes(t));
		shard_transform_draw(t, &b, 0, row);
		CHECK_OK(shard_transform_host(t, &b, named ? row : NULL, RECORDS, got, &fixture_err));
		results = b;
		results.field[WHOLE_IMAGE].data = got;
		results.field[WHOLE_IMAGE].stride = shard_transform_row_bytes(t);
		for (uint32_t i = 0; i < RECORDS; i++) {
			struct shard_size size = whole_size(&schema, b.record[i]);
			struct transform_plan plan = even_plan(&asked, size, &o);
			struct transform_image image = transform_image_of(&plan, row_of(&b.field[0], i), NULL, 0);
			struct shard_transform_row want = {0};
			void *scratch = aligned_alloc(32, (transform_twin_bytes(&plan) + 31) / 32 * 32);
			uint8_t *one = malloc(plan.row_bytes);

			transform_draw_row(&plan, &image, &b, i, 0, &want);
			CHECK_MEM(&row[i], &want, sizeof(want));
			transform_twin(&plan, &want, &image, one, scratch);
			CHECK_MEM(row_of(&results.field[WHOLE_IMAGE], i), one, (size_t)plan.row_bytes);
			free(scratch);
			free(one);
		}
	}
	row[3].width = b.field[WHOLE_IMAGE].size[3].width + 1;
	CHECK_EQ(shard_transform_host(t, &b, row, RECORDS, got, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "rows: row 3 is ") && strstr(err.message, "; must lie within "));
	free(got);
	shard_transform_close(t);
	shard_loader_close(l);
}

/* Nothing is resized: the smallest output, which lies within every image. */
TEST(parts_of_every_image_are_cropped)
{
	make(SHARD_RAW, NULL, 0);
	for (uint32_t crop = SHARD_CROP_CENTER; crop <= SHARD_CROP_RANDOM; crop++) {
		struct shard_transform_options asked = asked_of(crop);
		struct shard_loader_options o = of_kind(GLOBALLY);

		asked.crop = crop;
		asked.height = asked.width = 1;
		o.tail = SHARD_KEEP;
		CHECK_EQ(run_transformed(&asked, o, 2), 0);
	}
}

/* ---- what is refused ---- */

static const char *refusal(const struct shard_transform_options *asked, int status)
{
	struct shard_loader_transform to = {.size = sizeof(to), .field = "image", .options = asked};
	struct shard_loader_options o = of_kind(IN_SEQUENCE);
	struct shard_loader *l;

	o.transform = &to;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), status);
	return err.message;
}

TEST(options_that_no_image_allows_are_refused_at_open)
{
	struct shard_transform_options asked = asked_of(0);

	make(SHARD_RAW, NULL, 0);
	asked.width = 0;
	CHECK_STR(refusal(&asked, SHARD_E_ARGUMENT),
		  "options: output of 21 x 0, but the images differ in size; name the height and the width of "
		  "the output");
	asked.crop = SHARD_CROP_CENTER;
	asked.height = 40;
	asked.width = 41;
	CHECK_STR(refusal(&asked, SHARD_E_ARGUMENT),
		  "options: output of 40 x 41 cannot be cropped from images of at most 1600 pixels; ask for less, or "
		  "for SHARD_CROP_RESIZED");
	schema.field[WHOLE_SIZE].name[0] = 'x';
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	write_schema();
	asked = asked_of(0);
	CHECK_STR(
		refusal(&asked, SHARD_E_ARGUMENT),
		"field image is ragged, but not of whole images: those are u8 [pixels,channels] of semantic image and "
		"layout hwc, with their sizes in a field u32 [2], here image_size");
}

TEST(masks_cannot_follow)
{
	struct shard_transform_options asked = asked_of(0);

	make(SHARD_RAW, NULL, 0);
	schema.field[WHOLE_BOX].semantic = SHARD_MASK;
	write_schema();
	CHECK_STR(refusal(&asked, SHARD_E_UNSUPPORTED),
		  "options: field 'boxes' has masks, which cannot follow images that differ in size; leave the field "
		  "out of `fields`");
}

/* The error of a loader that transforms, and of a transform beside one that does not. */
static void check_fails(const struct shard_transform_options *asked, int status, const char *message)
{
	struct shard_loader_transform to = {.size = sizeof(to), .field = "image", .options = asked};
	struct shard_loader_options o = of_kind(IN_SEQUENCE);
	struct shard_transform *t;
	struct shard_loader *l;
	struct shard_batch b;
	uint8_t *got;

	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_OK(shard_transform_open(&t, l, "image", asked, &fixture_err));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	got = malloc(b.record_count * shard_transform_row_bytes(t));
	CHECK_EQ(shard_transform_host(t, &b, NULL, b.record_count, got, &err), status);
	CHECK_STR(err.message, message);
	free(got);
	shard_transform_close(t);
	shard_loader_close(l);
	o.transform = &to;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_EQ(shard_loader_next(l, &b, &err), status);
	CHECK_STR(err.message, message);
	shard_loader_close(l);
}

TEST(an_image_that_is_too_small_or_too_long_is_an_error)
{
	static const struct whole_lie longer[] = {{0, 1, 161, 161}};
	struct shard_transform_options asked = asked_of(2);

	make(SHARD_RAW, NULL, 0);
	asked.crop = SHARD_CROP_RANDOM;
	CHECK(whole_size(&schema, 0).height == 160 && whole_size(&schema, 0).width == 10);
	check_fails(&asked, SHARD_E_ARGUMENT,
		    "record 0 has an image of 160 x 10, and an output of 21 x 30 cannot be cropped from it; ask for "
		    "less, or for SHARD_CROP_RESIZED");
	make(SHARD_RAW, longer, COUNT(longer));
	asked = asked_of(2);
	check_fails(&asked, SHARD_E_UNSUPPORTED,
		    "record 0 has an image of 1 x 161; of images of up to 1600 pixels, those with sides of at most 160 "
		    "can be transformed");
}

/* ---- sizes that are wrong, under hashes that are right ---- */

static const struct {
	const char *story;
	struct whole_lie lie;
	const char *says;
} hostile[] = {
	{"no height", {5, 0, 40, 0}, "0.shard: I59: record 5: field 'image'"},
	{"no width", {5, 40, 0, 0}, "0.shard: I59: record 5: field 'image'"},
	{"nothing of height, and pixels", {5, 0, 40, 40}, "0.shard: I59: record 5: field 'image'"},
	{"one pixel too few", {5, 10, 10, 99}, "0.shard: I59: record 5: field 'image'"},
	{"one too many", {5, 10, 10, 101}, "0.shard: I59: record 5: field 'image'"},
	{"a product of 2^32 + 2", {5, 0x80000001, 2, 2}, "0.shard: I59: record 5: field 'image'"},
	{"a product of 2^32", {5, 0x10000, 0x10000, 0}, "0.shard: I59: record 5: field 'image'"},
	{"more pixels than there is room for",
	 {5, 1, 1601, 1601},
	 "0.shard: I57: record 5: field 'image' has 1601 pixels; its shape allows 1600"},
};

static bool all_zero(const uint8_t *p, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (p[i])
			return false;
	return true;
}

/* Two epochs in sequence, raw: slots are used again.  Returns what ended them. */
static int run_raw(uint32_t policy, uint32_t path)
{
	struct shard_loader_options o = of_kind(IN_SEQUENCE);
	struct shard_loader_stats stats;
	struct shard_error last;
	struct shard_loader *l;
	struct shard_batch b;
	unsigned ends = 0;
	int rc;

	o.repair.on_corrupt = policy;
	o.path = path;
	o.tail = SHARD_KEEP;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	while (!(rc = shard_loader_next(l, &b, &err)) || (rc == SHARD_END && !ends++)) {
		uint32_t i = (uint32_t)(5 - b.position);

		if (rc)
			continue;
		if (!trusting && b.position <= 5 && i < b.record_count && policy == SHARD_CORRUPT_MASK) {
			CHECK_EQ(b.row_flags[i], SHARD_ROW_MASKED);
			CHECK(all_zero(row_of(&b.field[WHOLE_IMAGE], i), MOST * 3));
			CHECK(all_zero(row_of(&b.field[WHOLE_SIZE], i), 8));
			CHECK(!b.field[WHOLE_IMAGE].size[i].height && !b.field[WHOLE_IMAGE].size[i].width);
		} else if (!trusting) {
			check_raw(&b); /* of a substitute, what it has */
		}
		if (!trusting && b.position <= 5 && i < b.record_count && policy == SHARD_CORRUPT_SUBSTITUTE)
			CHECK(b.row_flags[i] == SHARD_ROW_SUBSTITUTED && b.record[i] == 6);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	shard_loader_stats(l, &stats);
	if (!trusting && policy != SHARD_CORRUPT_FAIL) {
		CHECK(policy == SHARD_CORRUPT_MASK ? stats.masked_count : stats.substituted_count);
		CHECK_OK(shard_loader_last_damage(l, &last));
		err = last;
	}
	shard_loader_close(l);
	return rc;
}

TEST(a_size_that_is_wrong_is_damage)
{
	for (size_t i = 0; i < COUNT(hostile); i++) {
		make(i % 2 ? SHARD_LZ4 : SHARD_RAW, &hostile[i].lie, 1);
		for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++)
			for (uint32_t policy = SHARD_CORRUPT_FAIL; policy <= SHARD_CORRUPT_MASK; policy++) {
				STORY("%s, path %u, policy %u", hostile[i].story, path, policy);
				CHECK_EQ(run_raw(policy, path), policy ? SHARD_END : SHARD_E_CORRUPT);
				CHECK_EQ(err.status, SHARD_E_CORRUPT);
				CHECK(strstr(err.message, hostile[i].says));
			}
	}
}

/* A substitute is transformed with its own size, a masked row as a black image. */
TEST(rows_that_are_replaced_are_transformed)
{
	for (size_t i = 0; i < COUNT(hostile); i++) {
		struct shard_transform_options asked = asked_of(2 + (uint32_t)i);

		make(SHARD_RAW, &hostile[i].lie, 1);
		for (uint32_t policy = SHARD_CORRUPT_SUBSTITUTE; policy <= SHARD_CORRUPT_MASK; policy++) {
			struct shard_loader_options o = of_kind(GLOBALLY);

			STORY("%s, policy %u", hostile[i].story, policy);
			o.repair.on_corrupt = policy;
			o.tail = SHARD_KEEP;
			CHECK_EQ(run_transformed(&asked, o, 2), 2);
		}
	}
}

/* The next record is no substitute if its own size is wrong. */
TEST(a_substitute_is_checked_as_well)
{
	static const struct whole_lie two[] = {{5, 3, 3, 8}, {6, 3, 3, 10}};
	struct shard_loader_options o = of_kind(IN_SEQUENCE);
	struct shard_loader *l;
	struct shard_batch b;

	make(SHARD_RAW, two, COUNT(two));
	o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	CHECK(b.record[4] == 4 && b.record[5] == 7 && b.record[6] == 7);
	check_raw(&b);
	shard_loader_close(l);
}

/* The control: without the check, nobody notices. */
TEST(a_loader_that_trusts_sizes_would_be_noticed)
{
	trusting = true;
	for (size_t i = 0; i < COUNT(hostile); i++) {
		make(SHARD_RAW, &hostile[i].lie, 1);
		CHECK_EQ(run_raw(SHARD_CORRUPT_FAIL, SHARD_PATH_AUTO), SHARD_END);
	}
	trusting = false;
}

TEST_MAIN()
