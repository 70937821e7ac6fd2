/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_pixels.c - whose pixels the transforms of a loader give: those of the options, of the token or
 * of the dataset's recipe
 *
 * Each answer is read from the numbers that a batch becomes.  A wide output tells pillow-13 from
 * the others, and narrow parts of high images tell rows-first from the others.
 */
#include "libshard/format/format.h"
#include "shard_transform.h"
#include "tests/load/batches.h"

#define SIDE	256u
#define RECORDS 10u
#define NOT_SET 99u

static const struct shard_transform_options looks[] = {
	{.size = sizeof(looks[0]), .height = 8, .width = 64, .crop = SHARD_CROP_RESIZED},
	/* 2 x 220 to 2 x 238 */
	{.size = sizeof(looks[0]),
	 .height = 16,
	 .width = 8,
	 .crop = SHARD_CROP_RESIZED,
	 .area_min = 440.0 / (SIDE * SIDE),
	 .area_max = 470.0 / (SIDE * SIDE),
	 .ratio_min = 0.0083,
	 .ratio_max = 0.0091},
};
static const char *const names[] = {NULL, "rows-first", "pillow-12", "pillow-13"};

static struct shard_error err;
static uint64_t known[4]; /* a hash of what each gives */

/* ---- helpers ---- */

static void open_recipe(const char *text)
{
	static const uint64_t sizes[] = {4, RECORDS - 4};
	const char *usual = fixture_provenance;

	fixture_provenance = text;
	open_photos(SIDE, SHARD_RAW, sizes, COUNT(sizes));
	fixture_provenance = usual;
}

static struct shard_loader *open_loader(void)
{
	struct shard_loader_options o = {
		.size = sizeof(o), .batch_records = RECORDS, .order.seed = 3, .thread_count = 1};
	struct shard_loader *l;

	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	return l;
}

static int open_transform(struct shard_transform **t, struct shard_loader *l, size_t look, uint32_t pixels)
{
	struct shard_transform_options o = looks[look];

	o.pixels = pixels;
	return shard_transform_open(t, l, "image", &o, &err);
}

/* Open one, and close it. */
static int try_transform(struct shard_loader *l, uint32_t pixels)
{
	struct shard_transform *t;
	int rc = open_transform(&t, l, 0, pixels);

	if (!rc)
		shard_transform_close(t);
	return rc;
}

/* A hash of what the first batch of epoch 0 becomes in this loader. */
static uint64_t hash_of(struct shard_loader *l, uint32_t pixels)
{
	struct shard_transform *t[COUNT(looks)];
	uint64_t hash = 0;
	struct shard_batch b;

	for (size_t i = 0; i < COUNT(looks); i++)
		CHECK_OK(open_transform(&t[i], l, i, pixels));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	CHECK(b.epoch == 0 && b.position == 0);
	for (size_t i = 0; i < COUNT(looks); i++) {
		size_t bytes = (size_t)(RECORDS * shard_transform_row_bytes(t[i]));
		uint8_t *to = malloc(bytes);

		CHECK_OK(shard_transform_host(t[i], &b, NULL, 0, to, &fixture_err));
		hash = hash * 31 + checksum64(to, bytes);
		free(to);
		shard_transform_close(t[i]);
	}
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	return hash;
}

/* In a loader of its own: 1 to 3, which of the known ones it is; 0 for none. */
static uint32_t given(uint32_t pixels, const char *token)
{
	struct shard_loader *l = open_loader();
	uint32_t found = SHARD_PIXELS_PILLOW_13;
	uint64_t hash;

	if (token)
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	hash = hash_of(l, pixels);
	while (found && known[found] != hash)
		found--;
	shard_loader_close(l);
	return found;
}

static void learn(void)
{
	open_recipe(NULL);
	for (uint32_t i = SHARD_PIXELS_ROWS_FIRST; i <= SHARD_PIXELS_PILLOW_13; i++) {
		struct shard_loader *l = open_loader();

		known[i] = hash_of(l, i);
		shard_loader_close(l);
		for (uint32_t k = 1; k < i; k++)
			CHECK(known[k] != known[i]);
	}
}

/* ---- the recipe ---- */

TEST(a_resize_gives_what_the_recipe_names)
{
	static const struct {
		const char *recipe;
		uint32_t want;
		const char *unknown;
	} rows[] = {
		{"made by shardpack\nsource images\npixels pillow-13\nfilter bilinear\n", SHARD_PIXELS_PILLOW_13, NULL},
		{"made by shardpack\nsource images\npixels pillow-12\nfilter bilinear\n", SHARD_PIXELS_PILLOW_12, NULL},
		{"made by shardpack\nsource images\npixels rows-first\n", SHARD_PIXELS_ROWS_FIRST, NULL},
		{"made by shardpack\nsource images\npixels pillow-12", SHARD_PIXELS_PILLOW_12, NULL},
		{"made by shardpack\nsource images\nfilter bilinear\n", SHARD_PIXELS_ROWS_FIRST, NULL},
		{"made by shardpack\nsource images\nthe pixels pillow-13\n", SHARD_PIXELS_ROWS_FIRST, NULL},
		{"pixels pillow-13\n", SHARD_PIXELS_PILLOW_13, NULL}, /* also as the first line */
		{"mine\npixels pillow-12\npixels pillow-13\n", SHARD_PIXELS_PILLOW_12, NULL},
		{"pixels", SHARD_PIXELS_ROWS_FIRST, NULL},
		{NULL, SHARD_PIXELS_ROWS_FIRST, NULL},
		{"made by shardpack\nsource images\npixels pillow-14\n", 0, "pillow-14"},
		{"made by shardpack\nsource images\npixels pillow-1\n", 0, "pillow-1"},
		{"made by shardpack\nsource images\npixels pillow-133\n", 0, "pillow-133"},
		{"made by shardpack\nsource images\npixels pillow-13 \n", 0, "pillow-13 "},
	};

	learn();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_transform_options plain = {.size = sizeof(plain), .height = 8, .width = 8};
		struct shard_loader *l;
		struct shard_transform *t;
		char says[100];

		STORY("%s", rows[i].recipe ? rows[i].recipe : "no recipe");
		open_recipe(rows[i].recipe);
		l = open_loader();
		if (rows[i].unknown) {
			CHECK_EQ(try_transform(l, SHARD_PIXELS_RECIPE), SHARD_E_UNSUPPORTED);
			snprintf(says, sizeof(says), "recipe says pixels %s, which", rows[i].unknown);
			CHECK(strstr(err.message, says));
		} else {
			CHECK_EQ(given(SHARD_PIXELS_RECIPE, NULL), rows[i].want);
		}
		/* a transform that does not resize needs no name */
		CHECK_OK(shard_transform_open(&t, l, "image", &plain, &fixture_err));
		shard_transform_close(t);
		shard_loader_close(l);
		for (uint32_t pixels = SHARD_PIXELS_ROWS_FIRST; pixels <= SHARD_PIXELS_PILLOW_13; pixels++)
			CHECK_EQ(given(pixels, NULL), pixels);
	}
}

/* ---- tokens ---- */

/* The token of a loader whose transform was opened with these pixels; NOT_SET: it has none. */
static void token_of(uint32_t pixels, char token[SHARD_TOKEN_BYTES])
{
	struct shard_loader *l = open_loader();

	if (pixels != NOT_SET)
		CHECK_OK(try_transform(l, pixels));
	shard_loader_token(l, token);
	shard_loader_close(l);
}

/* Does it name these pixels?  NULL: none. */
static bool token_names(const char *token, const char *name)
{
	char words[40];

	snprintf(words, sizeof(words), " subset all%s%s check ", name ? " pixels " : "", name ? name : "");
	return strstr(token, words);
}

TEST(a_token_names_the_pixels_of_a_resize)
{
	struct shard_transform_options plain = {.size = sizeof(plain), .pixels = SHARD_PIXELS_PILLOW_13};
	char token[SHARD_TOKEN_BYTES], again[SHARD_TOKEN_BYTES];
	struct shard_transform *t;
	struct shard_loader *l;

	open_recipe("recipe\npixels pillow-12\n");
	token_of(NOT_SET, token);
	CHECK(token_names(token, NULL));
	token_of(SHARD_PIXELS_RECIPE, token);
	CHECK(token_names(token, "pillow-12"));
	for (uint32_t pixels = SHARD_PIXELS_ROWS_FIRST; pixels <= SHARD_PIXELS_PILLOW_13; pixels++) {
		token_of(pixels, token);
		CHECK(token_names(token, names[pixels]));
		l = open_loader(); /* which keeps it before a transform is open */
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		shard_loader_token(l, again);
		CHECK_STR(again, token);
		shard_loader_close(l);
	}
	l = open_loader();
	CHECK_OK(shard_transform_open(&t, l, "image", &plain, &fixture_err));
	shard_transform_close(t);
	CHECK_EQ(try_transform(l, 4), SHARD_E_ARGUMENT);
	shard_loader_token(l, token);
	CHECK(token_names(token, NULL));
	shard_loader_close(l);
}

TEST(a_transform_takes_the_pixels_of_the_token)
{
	static const char *const recipes[] = {NULL, "recipe\npixels pillow-12\n", "recipe\npixels pillow-99\n"};
	char token[SHARD_TOKEN_BYTES], old[SHARD_TOKEN_BYTES];

	learn();
	for (size_t i = 0; i < COUNT(recipes); i++) {
		open_recipe(recipes[i]);
		token_of(NOT_SET, old);
		for (uint32_t pixels = SHARD_PIXELS_ROWS_FIRST; pixels <= SHARD_PIXELS_PILLOW_13; pixels++) {
			STORY("recipe %zu, %s", i, names[pixels]);
			token_of(pixels, token);
			CHECK_EQ(given(SHARD_PIXELS_RECIPE, token), pixels);
			CHECK_EQ(given(pixels, token), pixels);
			CHECK_EQ(given(pixels, old), pixels);
		}
		if (i < 2)
			CHECK_EQ(given(SHARD_PIXELS_RECIPE, old), i ? SHARD_PIXELS_PILLOW_12 : SHARD_PIXELS_ROWS_FIRST);
	}
}

/* A place of epoch 1, so that a loader that moved would tell. */
static void check_refused(struct shard_loader *l, const char *token, const char *says)
{
	char before[SHARD_TOKEN_BYTES], after[SHARD_TOKEN_BYTES];

	CHECK_OK(shard_loader_seek(l, 1, 0, &fixture_err));
	shard_loader_token(l, before);
	CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, says));
	shard_loader_token(l, after);
	CHECK_STR(after, before);
}

TEST(pixels_that_differ_from_the_tokens_are_refused)
{
	char token[SHARD_TOKEN_BYTES], other[SHARD_TOKEN_BYTES], old[SHARD_TOKEN_BYTES];
	struct shard_loader *l;

	open_recipe("recipe\npixels pillow-12\n");
	token_of(SHARD_PIXELS_PILLOW_13, token);
	token_of(SHARD_PIXELS_ROWS_FIRST, other);
	token_of(NOT_SET, old);

	STORY("resumed first");
	l = open_loader();
	CHECK_OK(shard_loader_resume(l, other, &fixture_err)); /* which the next one replaces */
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	CHECK_EQ(try_transform(l, SHARD_PIXELS_PILLOW_12), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "token belongs to pixels of pillow-13, and the options ask for those of pillow-12"));
	CHECK_OK(try_transform(l, SHARD_PIXELS_PILLOW_13));
	check_refused(l, other,
		      "token belongs to pixels of rows-first, and a transform of this loader gives those of "
		      "pillow-13");
	shard_loader_close(l);

	STORY("opened first");
	for (uint32_t pixels = SHARD_PIXELS_RECIPE; pixels <= SHARD_PIXELS_PILLOW_13; pixels++) {
		l = open_loader();
		CHECK_OK(try_transform(l, pixels));
		CHECK_OK(shard_loader_resume(l, old, &fixture_err));
		if (pixels == SHARD_PIXELS_PILLOW_13)
			CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		else
			check_refused(l, token, "token belongs to pixels of pillow-13, and a transform of this loader");
		shard_loader_close(l);
	}

	STORY("a token without a word ends what the one before said");
	l = open_loader();
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	CHECK_OK(shard_loader_resume(l, old, &fixture_err));
	CHECK_OK(try_transform(l, SHARD_PIXELS_ROWS_FIRST));
	shard_loader_close(l);

	STORY("two transforms");
	l = open_loader();
	CHECK_OK(try_transform(l, SHARD_PIXELS_ROWS_FIRST));
	CHECK_EQ(try_transform(l, SHARD_PIXELS_RECIPE), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "would give pixels of pillow-12, and an earlier one of this loader gives those of "
				  "rows-first"));
	CHECK_OK(try_transform(l, SHARD_PIXELS_ROWS_FIRST));
	shard_loader_close(l);
}

TEST_MAIN()
