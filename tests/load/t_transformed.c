/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_transformed.c - a loader that transforms images delivers what shard_transform_host() makes of
 * the batches of one that does not, and all else as it is
 *
 * What a transform does is held to Pillow and torchvision elsewhere.  Here it is who gets which
 * draws, and where the bytes go.
 *
 * TIMEOUT: 300
 */
#include <pthread.h>

#include "libshard/transform/transform.h"
#include "shard_transform.h"
#include "tests/load/batches.h"
#include "tests/load/kinds.h"

#define MOST_ROWS 160u

static const uint64_t sizes[] = {40, 1, 0, 62, 90};
static struct shard_error err;

static bool mistaken; /* the control: images are expected to have the draws of the row before */

/* ---- two loaders ---- */

static struct shard_transform_options asked_of(uint32_t crop, uint32_t dtype, uint32_t layout, uint32_t side)
{
	struct shard_transform_options o = {.size = sizeof(o),
					    .height = side,
					    .width = side + 1,
					    .dtype = dtype,
					    .layout = layout,
					    .crop = crop,
					    .flip = 0.5};

	if (dtype != SHARD_U8) {
		memcpy(o.mean, (const float[]){0.485f, 0.456f, 0.406f}, 3 * sizeof(float));
		memcpy(o.std, (const float[]){0.229f, 0.224f, 0.225f}, 3 * sizeof(float));
	}
	return o;
}

static struct pair {
	struct shard_loader *plain, *transforming;
	struct shard_transform *transform; /* of batches of the plain one */
	uint32_t views;
	uint8_t *want; /* [row] */
} pair;

static void pair_open(struct shard_loader_options o, const struct shard_transform_options *asked, uint32_t views)
{
	struct shard_loader_transform to = {.size = sizeof(to), .views = views, .field = "image", .options = asked};

	pair.views = views ? views : 1;
	CHECK_OK(shard_loader_open(&pair.plain, ds, &o, &fixture_err));
	CHECK_OK(shard_transform_open(&pair.transform, pair.plain, "image", asked, &fixture_err));
	o.transform = &to;
	CHECK_OK(shard_loader_open(&pair.transforming, ds, &o, &fixture_err));
	memset(&to, 0x77, sizeof(to)); /* it need not live longer */
	pair.want = malloc(MOST_ROWS * shard_transform_row_bytes(pair.transform));
}

static void pair_close(void)
{
	shard_transform_close(pair.transform);
	shard_loader_close(pair.plain);
	shard_loader_close(pair.transforming);
	free(pair.want);
}

static const uint8_t *row_of(const struct shard_rows *rows, uint32_t i)
{
	return (const uint8_t *)rows->data + i * rows->stride;
}

/* How many images of a batch are not what they should be. */
static unsigned wrong_images(const struct shard_batch *plain, const struct shard_batch *b)
{
	struct shard_transform_row draw[MOST_ROWS], drawn[MOST_ROWS * SHARD_VIEWS_MAX];
	uint64_t bytes = shard_transform_row_bytes(pair.transform);
	unsigned wrong = 0;

	CHECK(b->record_count <= MOST_ROWS);
	CHECK_EQ(b->field[0].stride, pair.views * bytes);
	CHECK_OK(shard_loader_drawn(pair.transforming, b, drawn, &fixture_err));
	for (uint32_t view = 0; view < pair.views; view++) {
		shard_transform_draw(pair.transform, plain, view, draw);
		if (mistaken)
			memmove(draw + 1, draw, (plain->record_count - 1) * sizeof(*draw));
		CHECK_OK(shard_transform_host(pair.transform, plain, draw, plain->record_count, pair.want,
					      &fixture_err));
		for (uint32_t i = 0; i < b->record_count; i++) {
			if (!mistaken)
				CHECK_MEM(&drawn[i * pair.views + view], &draw[i], sizeof(draw[i]));
			wrong += memcmp(row_of(&b->field[0], i) + view * bytes, pair.want + i * bytes, (size_t)bytes) !=
				 0;
		}
	}
	return wrong;
}

/* The next step of both.  Returns how many images are wrong, or -1 at the end of an epoch. */
static int pair_step(void)
{
	struct shard_batch plain, b;
	int rc = shard_loader_next(pair.plain, &plain, &err), wrong;

	CHECK_EQ(shard_loader_next(pair.transforming, &b, &fixture_err), rc);
	if (rc == SHARD_END)
		return -1;
	CHECK_EQ(rc, SHARD_OK);
	CHECK_EQ(b.record_count, plain.record_count);
	CHECK_EQ(b.position, plain.position);
	CHECK_MEM(b.record, plain.record, b.record_count * sizeof(*b.record));
	CHECK_MEM(b.row_flags, plain.row_flags, b.record_count);
	for (uint32_t f = 1; f < schema.field_count; f++)
		for (uint32_t i = 0; plain.field[f].data && i < b.record_count; i++)
			CHECK_MEM(row_of(&b.field[f], i), row_of(&plain.field[f], i), (size_t)schema.field[f].bytes);
	wrong = (int)wrong_images(&plain, &b);
	CHECK_OK(shard_loader_release(pair.plain, &plain, &fixture_err));
	CHECK_OK(shard_loader_release(pair.transforming, &b, &fixture_err));
	return wrong;
}

static int pair_epochs(unsigned epochs)
{
	int wrong = 0, rc;

	while (epochs) {
		rc = pair_step();
		epochs -= rc < 0;
		wrong += rc > 0 ? rc : 0;
	}
	return wrong;
}

/* ---- the same bytes ---- */

TEST(images_come_transformed_by_every_path_and_in_every_order)
{
	static const uint32_t dtypes[] = {SHARD_U8, SHARD_F16, SHARD_F32, SHARD_BF16};
	uint32_t n = 0;

	for (uint32_t side = 8; side <= 48; side += 40) /* an array of small rows; a block */
		for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
			open_photos(side, codec, sizes, COUNT(sizes));
			for (size_t kind = 0; kind < KINDS; kind++)
				for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++, n++) {
					struct shard_transform_options asked =
						asked_of(n % 3, dtypes[n % 4], n / 4 % 2 ? SHARD_HWC : SHARD_CHW, 7);
					struct shard_loader_options o = of_kind(kind);

					STORY("side %u, codec %u, order %u, path %u", side, codec, (unsigned)kind,
					      path);
					o.tail = SHARD_KEEP;
					o.path = path;
					o.batch_records = n % 2 ? 150 : 7; /* more than are on their way at once */
					o.thread_count = 1 + n % 3;
					pair_open(o, &asked, n / 3 % 4);
					CHECK_EQ(pair_epochs(2), 0);
					pair_close();
				}
		}
}

/* Images that are stored as planes: there is no fast path for them. */
TEST(planes_are_transformed)
{
	for (uint32_t crop = SHARD_CROP_CENTER; crop <= SHARD_CROP_RESIZED; crop++) {
		struct shard_transform_options asked = asked_of(crop, SHARD_F16, SHARD_HWC, 9);
		struct shard_loader_options o = of_kind(GLOBALLY);

		schema = photo_schema(48, SHARD_RAW);
		schema.field[PHOTO_IMAGE].layout = SHARD_CHW;
		memcpy(schema.field[PHOTO_IMAGE].shape, ((const uint32_t[]){3, 48, 48}), 3 * sizeof(uint32_t));
		CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
		make_dataset("planes", sizes, COUNT(sizes));
		pair_open(o, &asked, 2);
		CHECK_EQ(pair_epochs(1), 0);
		pair_close();
	}
}

/* A field in the group of the images, which is no block any more. */
TEST(fields_beside_the_images_are_arrays_of_their_own)
{
	for (uint32_t side = 8; side <= 48; side += 40)
		for (uint32_t fields = 1; fields < 8; fields += 2) {
			struct shard_transform_options asked = asked_of(SHARD_CROP_RANDOM, SHARD_F16, SHARD_CHW, 5);
			struct shard_loader_options o = of_kind(GLOBALLY);
			struct shard_field f;

			STORY("side %u, fields %u", side, fields);
			schema = photo_schema(side, SHARD_RAW);
			schema.field[PHOTO_WEIGHT].group = 0;
			CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
			make_dataset("beside", sizes, COUNT(sizes));
			o.fields = fields;
			pair_open(o, &asked, 1);
			CHECK_EQ(pair_epochs(1), 0);
			shard_loader_field(pair.transforming, PHOTO_WEIGHT, &f);
			CHECK_EQ(f.stride, fields >> PHOTO_WEIGHT & 1 ? 12 : schema.group[0].stride);
			pair_close();
		}
}

/* A job that goes on from a token, in other batches, on other ranks, sees the same images. */
TEST(a_job_that_goes_on_sees_the_same_crops)
{
	struct shard_transform_options asked = asked_of(SHARD_CROP_RESIZED, SHARD_U8, SHARD_HWC, 9);
	struct shard_loader_options o = of_kind(IN_WINDOWS);
	char token[SHARD_TOKEN_BYTES];

	open_photos(48, SHARD_RAW, sizes, COUNT(sizes));
	pair_open(o, &asked, 2);
	for (int i = 0; i < 9; i++)
		CHECK_EQ(pair_step(), 0);
	shard_loader_token(pair.transforming, token);
	pair_close();
	for (o.rank = 0, o.world = 3; o.rank < o.world; o.rank++) {
		o.batch_records = 5;
		pair_open(o, &asked, 2);
		CHECK_OK(shard_loader_resume(pair.plain, token, &fixture_err));
		CHECK_OK(shard_loader_resume(pair.transforming, token, &fixture_err));
		CHECK_EQ(pair_epochs(1), 0);
		pair_close();
	}
}

/* A substitute is transformed with the draws of its place; a masked row as a black image. */
TEST(rows_that_are_replaced_are_transformed)
{
	struct shard_transform_options asked = asked_of(SHARD_CROP_RANDOM, SHARD_F32, SHARD_CHW, 11);
	struct shard_loader_options o = of_kind(GLOBALLY);

	for (o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE; o.repair.on_corrupt <= SHARD_CORRUPT_MASK;
	     o.repair.on_corrupt++) {
		struct shard_loader_stats stats;

		open_photos(48, SHARD_RAW, sizes, COUNT(sizes));
		for (uint64_t i = 0; i < 9; i++)
			damage_record(&folder, 0, 0, (3 + i) * schema.group[0].stride + 70);
		reopen(NULL);
		o.batch_records = 100;
		o.tail = SHARD_KEEP;
		pair_open(o, &asked, 1);
		CHECK_EQ(pair_epochs(1), 0);
		shard_loader_stats(pair.transforming, &stats);
		CHECK(stats.substituted_count + stats.masked_count >= 9);
		pair_close();
	}
}

/* ---- what a field is ---- */

TEST(a_loader_says_what_its_fields_are)
{
	struct shard_transform_options asked = asked_of(SHARD_CROP_CENTER, SHARD_BF16, SHARD_CHW, 20);
	struct shard_loader_options o = of_kind(GLOBALLY);
	struct shard_field f;

	open_photos(48, SHARD_RAW, sizes, COUNT(sizes));
	pair_open(o, &asked, 3);
	shard_loader_field(pair.transforming, PHOTO_IMAGE, &f);
	CHECK_STR(f.name, "image");
	CHECK_EQ(f.dtype, SHARD_BF16);
	CHECK_EQ(f.layout, SHARD_CHW);
	CHECK_EQ(f.ndim, 4);
	CHECK_MEM(f.shape, ((const uint32_t[]){3, 3, 20, 21}), 4 * sizeof(*f.shape));
	CHECK_EQ(f.bytes, 3 * 3 * 20 * 21 * 2);
	CHECK_EQ(f.stride, f.bytes);
	shard_loader_field(pair.transforming, PHOTO_LABEL, &f);
	CHECK_EQ(f.stride, 8);
	shard_loader_field(pair.plain, PHOTO_IMAGE, &f);
	CHECK_MEM(&f, &schema.field[PHOTO_IMAGE], sizeof(f));
	pair_close();
	asked.layout = SHARD_HWC;
	pair_open(o, &asked, 1);
	shard_loader_field(pair.transforming, PHOTO_IMAGE, &f);
	CHECK_EQ(f.ndim, 3);
	CHECK_MEM(f.shape, ((const uint32_t[]){20, 21, 3}), 3 * sizeof(*f.shape));
	pair_close();
}

static const char *refusal(struct shard_loader_options o, const struct shard_loader_transform *to, int status)
{
	struct shard_loader *l;

	o.transform = to;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), status);
	return err.message;
}

TEST(what_cannot_be_transformed_is_refused)
{
	struct shard_transform_options asked = asked_of(SHARD_CROP_CENTER, SHARD_U8, SHARD_CHW, 20);
	struct shard_loader_transform to = {.size = sizeof(to), .field = "image", .options = &asked};
	struct shard_loader_options o = of_kind(GLOBALLY);
	struct shard_transform *beside;

	open_photos(48, SHARD_RAW, sizes, COUNT(sizes));
	to.field = "picture";
	CHECK_STR(refusal(o, &to, SHARD_E_ARGUMENT), "the dataset has no field picture");
	to.field = "label";
	CHECK_STR(refusal(o, &to, SHARD_E_ARGUMENT), "field label is a tensor of i64; must be a tensor of u8");
	to.field = NULL;
	CHECK_STR(refusal(o, &to, SHARD_E_ARGUMENT),
		  "options: transform names no field; must name a field and what to do with it");
	to.field = "image";
	to.views = 17;
	CHECK_STR(refusal(o, &to, SHARD_E_ARGUMENT), "options: transform has 17 views; must be 1 to 16");
	to.views = 1;
	o.fields = 2;
	CHECK_STR(refusal(o, &to, SHARD_E_ARGUMENT),
		  "options: field 'image' is to be transformed, but is not in the loader's batches; add it to its "
		  "fields");
	o.fields = 0;
	asked.mean[1] = 0.5f;
	CHECK_STR(refusal(o, &to, SHARD_E_ARGUMENT),
		  "options: mean[1] is 0.5 and std[1] 0, but with SHARD_U8 samples stay what they are; leave out "
		  "mean and std, or ask for another dtype");
	asked.mean[1] = 0;
	pair_open(o, &asked, 1);
	CHECK_EQ(shard_transform_open(&beside, pair.transforming, "image", &asked, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "field 'image' is transformed by the loader itself; open another loader, without a "
			       "transform in its options");
	CHECK_EQ(shard_loader_drawn(pair.plain, NULL, NULL, &err), SHARD_E_ARGUMENT);
	pair_close();
}

/* ---- fields that might belong to the pixels ---- */

#define U8  SHARD_U8
#define F32 SHARD_F32

/* The fourth field of a record beside an image of 48 x 48. */
static const struct {
	const char *story, *name;
	uint32_t dtype, semantic, ragged_axes, ndim, shape[4];
	const char *why; /* as the message has it; NULL: it is delivered as it is stored */
} further[] = {
	{"boxes that vary in number", "objects", F32, 0, 1, 2, {6, 4}, "'objects' f32[<=6,4] (rows of 4 numbers"},
	{"boxes of a fixed number", "objects", F32, 0, 0, 2, {6, 4}, "'objects' f32[6,4] (rows of 4 numbers"},
	{"one box", "where", F32, 0, 0, 1, {4}, "'where' f32[4] (rows of 4 numbers"},
	{"boxes of integers", "where", SHARD_I16, 0, 1, 2, {9, 4}, "'where' i16[<=9,4] (rows of 4 numbers"},
	{"boxes of several frames", "where", F32, 0, 0, 3, {2, 6, 4}, "'where' f32[2,6,4] (rows of 4 numbers"},
	{"boxes and a class", "BBoxes", F32, 0, 1, 2, {6, 5}, "'BBoxes' f32[<=6,5] (called like boxes)"},
	{"corners", "boxes", F32, 0, 0, 3, {6, 2, 2}, "'boxes' f32[6,2,2] (called like boxes)"},
	{"a mask", "seg", U8, 0, 0, 2, {48, 48}, "'seg' u8[48,48] (of the images' size)"},
	{"a mask of bools", "seg", SHARD_BOOL, 0, 0, 2, {48, 48}, "'seg' bool[48,48] (of the images' size)"},
	{"a mask with an axis of one", "seg", U8, 0, 0, 3, {48, 48, 1}, "'seg' u8[48,48,1] (of the images' size)"},
	{"instance masks", "seg", U8, 0, 1, 3, {5, 48, 48}, "'seg' u8[<=5,48,48] (of the images' size)"},
	{"depth", "depth", F32, 0, 0, 2, {48, 48}, "'depth' f32[48,48] (of the images' size)"},
	{"a class for each pixel", "seg", U8, SHARD_LABEL, 0, 2, {48, 48}, "'seg' u8[48,48] (of the images' size)"},
	{"a smaller mask", "mask", U8, 0, 0, 2, {24, 24}, "'mask' u8[24,24] (called like a mask)"},
	{"keypoints", "keypoints", F32, 0, 1, 3, {3, 17, 2}, "'keypoints' f32[<=3,17,2] (called like points)"},
	{"keypoints in a row", "keypoints", F32, 0, 0, 1, {51}, "'keypoints' f32[51] (called like points)"},
	{"another image", "left", U8, SHARD_IMAGE, 0, 3, {9, 9, 3}, "'left' u8[9,9,3] (images as well)"},
	{"classes of boxes", "box_labels", SHARD_I64, 0, 1, 1, {6}, NULL},
	{"a list of at most 4", "ids", SHARD_I64, 0, 1, 1, {4}, NULL},
	{"0 or 1 for each of 4 classes", "label", U8, SHARD_LABEL, 0, 1, {4}, NULL},
	{"4 bools", "flags", SHARD_BOOL, 0, 0, 1, {4}, NULL},
	{"3 numbers", "colour", F32, 0, 0, 1, {3}, NULL},
	{"a matrix", "matrix", F32, 0, 0, 2, {48, 3}, NULL},
	{"a number", "box_count", SHARD_I64, 0, 0, 0, {0}, NULL},
	{"a mask of text", "attention_mask", U8, 0, 0, 1, {48}, NULL},
};

/* The dataset of a row of `further`. */
static void open_beside(size_t row)
{
	struct shard_field *f = &schema.field[PHOTO_WEIGHT + 1];

	schema = photo_schema(48, SHARD_RAW);
	snprintf(schema.field[PHOTO_LABEL].name, SHARD_NAME_BYTES, "number");
	*f = (struct shard_field){.dtype = further[row].dtype,
				  .kind = further[row].ragged_axes ? SHARD_RAGGED : SHARD_TENSOR,
				  .semantic = further[row].semantic,
				  .group = 1,
				  .ragged_axes = further[row].ragged_axes,
				  .ndim = further[row].ndim};
	schema.field_count++;
	snprintf(f->name, sizeof(f->name), "%s", further[row].name);
	memcpy(f->shape, further[row].shape, sizeof(further[row].shape));
	if (f->kind == SHARD_RAGGED) {
		f->length_field = PHOTO_WEIGHT + 2;
		f[1] = (struct shard_field){.name = "many",
					    .dtype = SHARD_U32,
					    .semantic = SHARD_LENGTH,
					    .group = 1,
					    .ndim = 1,
					    .shape = {1}};
		schema.field_count++;
	}
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	make_dataset("doubts", sizes, COUNT(sizes));
}

TEST(a_field_that_might_belong_to_the_pixels_is_refused_until_it_is_named)
{
	static const struct {
		const char *story;
		uint32_t crop, height, views;
		double flip;
		bool moves;
	} moves[] = {
		{"a crop in the middle", SHARD_CROP_CENTER, 40, 1, 0, true},
		{"a crop anywhere", SHARD_CROP_RANDOM, 40, 1, 0, true},
		{"a resize", SHARD_CROP_RESIZED, 48, 1, 0, true},
		{"a flip", SHARD_CROP_CENTER, 48, 1, 0.5, true},
		{"views", SHARD_CROP_CENTER, 48, 2, 0, true},
		{"numbers alone", SHARD_CROP_CENTER, 48, 1, 0, false},
	};

	for (size_t row = 0; row < COUNT(further); row++) {
		open_beside(row);
		for (size_t m = 0; m < COUNT(moves); m++) {
			struct shard_transform_options asked = {.size = sizeof(asked),
								.height = moves[m].height,
								.crop = moves[m].crop,
								.flip = moves[m].flip};
			struct shard_loader_transform to = {
				.size = sizeof(to), .views = moves[m].views, .field = "image", .options = &asked};
			struct shard_loader_options o = of_kind(GLOBALLY);
			const char *name = further[row].name;
			struct shard_loader *l;

			STORY("%s beside %s", further[row].story, moves[m].story);
			if (moves[m].moves && further[row].why) {
				CHECK(strstr(refusal(o, &to, SHARD_E_ARGUMENT), further[row].why));
				CHECK(strstr(err.message,
					     "the transform moves the pixels of 'image', but not these fields: "));
				CHECK(strstr(err.message, "name them: transform.as_stored=[\""));
				o.fields = 1; /* a field that is not wanted does not matter */
				o.transform = &to;
				CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
				shard_loader_close(l);
				o.fields = 0;
				to.as_stored = &name;
				to.as_stored_count = 1;
			}
			o.transform = &to;
			CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
			shard_loader_close(l);
		}
	}
}

TEST(the_refusal_says_what_to_type)
{
	struct shard_transform_options asked = asked_of(SHARD_CROP_RANDOM, SHARD_U8, SHARD_HWC, 20);
	struct shard_loader_transform to = {.size = sizeof(to), .field = "image", .options = &asked};

	open_beside(0);
	CHECK_STR(
		refusal(of_kind(GLOBALLY), &to, SHARD_E_ARGUMENT),
		"options: the transform moves the pixels of 'image', but not these fields: 'objects' f32[<=6,4] (rows "
		"of 4 numbers, as boxes have). If they do not belong to the pixels, name them: "
		"transform.as_stored=[\"objects\"]. To let them follow, pack again with a semantic: in Python "
		"libshard.pack(ds, {**dict(zip(ds.schema.names, ds.schema)), \"objects\": \"boxes[<=6]\"}, NEW); or "
		"shardpack --field objects:kind=boxes,max=6 (boxes are x0, y0, x1, y1 in pixels)");
	schema.field[schema.field_count++] =
		(struct shard_field){.name = "mask", .dtype = SHARD_U16, .group = 1, .ndim = 2, .shape = {48, 48}};
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	make_dataset("doubts", sizes, COUNT(sizes));
	refusal(of_kind(GLOBALLY), &to, SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, ", \"objects\": \"boxes[<=6]\", \"mask\": \"mask:u16[48,48]\"}, NEW)"));
	CHECK(strstr(err.message, "shardpack --field objects:kind=boxes,max=6 --field mask:kind=mask (boxes"));
	CHECK(strstr(err.message, "transform.as_stored=[\"objects\", \"mask\"]"));
}

TEST(names_of_fields_that_stay_are_checked)
{
	static const struct {
		const char *name, *message;
	} rows[] = {
		{"objekts", "options: transform.as_stored names 'objekts', and the dataset has no such field"},
		{"image",
		 "options: transform.as_stored names 'image', which is what the transform is for; leave one of "
		 "both out"},
		{"mask", "options: transform.as_stored names 'mask', whose semantic is mask, so that it follows the "
			 "images; leave the name out"},
		{"label", NULL}, /* it needs no name, and does as it says */
	};
	struct shard_transform_options asked = asked_of(SHARD_CROP_RANDOM, SHARD_U8, SHARD_HWC, 20);

	schema = photo_schema(48, SHARD_RAW);
	schema.field[PHOTO_WEIGHT] = (struct shard_field){
		.name = "mask", .dtype = SHARD_U8, .semantic = SHARD_MASK, .group = 1, .ndim = 2, .shape = {48, 48}};
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	make_dataset("names", sizes, COUNT(sizes));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_loader_transform to = {.size = sizeof(to),
						    .field = "image",
						    .options = &asked,
						    .as_stored = &rows[i].name,
						    .as_stored_count = 1};
		struct shard_loader_options o = of_kind(GLOBALLY);
		struct shard_loader *l;

		STORY("%s", rows[i].name);
		o.transform = &to;
		if (rows[i].message) {
			CHECK_STR(refusal(o, &to, SHARD_E_ARGUMENT), rows[i].message);
		} else {
			CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
			shard_loader_close(l);
		}
	}
}

/* Masks that the loader has cut are no images of the stored size any more. */
TEST(a_second_transform_of_what_was_transformed_is_refused)
{
	struct shard_transform_options asked = asked_of(SHARD_CROP_CENTER, SHARD_U8, SHARD_HWC, 20);
	struct shard_loader_transform to = {.size = sizeof(to), .field = "image", .options = &asked};
	struct shard_loader_options o = of_kind(GLOBALLY);
	struct shard_transform *beside;
	struct shard_loader *l;
	struct shard_field f;

	schema = photo_schema(48, SHARD_RAW);
	schema.field[PHOTO_WEIGHT] = (struct shard_field){
		.name = "mask", .dtype = SHARD_U8, .semantic = SHARD_MASK, .group = 1, .ndim = 2, .shape = {48, 48}};
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	make_dataset("masks", sizes, COUNT(sizes));
	o.transform = &to;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	shard_loader_field(l, PHOTO_WEIGHT, &f);
	CHECK_EQ(f.bytes, 20 * 21);
	CHECK_EQ(shard_transform_open(&beside, l, "mask", &asked, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "field 'mask' is transformed by the loader itself; open another loader, without a "
			       "transform in its options");
	shard_loader_close(l);
	o.fields = 1; /* the images alone */
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_EQ(shard_transform_open(&beside, l, "mask", &asked, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "field 'mask' is not in the loader's batches; add it to its fields");
	shard_loader_close(l);
}

/* ---- the control ---- */

TEST(draws_of_another_row_are_noticed)
{
	struct shard_transform_options asked = asked_of(SHARD_CROP_RANDOM, SHARD_U8, SHARD_HWC, 20);

	open_photos(48, SHARD_RAW, sizes, COUNT(sizes));
	mistaken = true;
	pair_open(of_kind(GLOBALLY), &asked, 1);
	CHECK(pair_epochs(1) > 100);
	pair_close();
	mistaken = false;
}

TEST_MAIN()
