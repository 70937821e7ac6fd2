/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_odd.c - examples/photos/odd: one photo in the forms that break converters
 *
 * What Pillow reads rightly must give Pillow's pixels (its answers: tests/twin/pillow_hashes.txt);
 * the rest must be refused for the right reason, with words that help.
 */
#include "shard_inspect.h"
#include "tests/pack/decoded.h"

static struct decode_verdict run_file(struct decoder *d, const char *name, struct image *image)
{
	static uint8_t bytes[1 << 20]; /* lives on, as a decoder could */
	struct decode_verdict v;
	enum decode_status status;
	char path[256];
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "examples/photos/odd/%s", name);
	STORY("%s", path);
	f = fopen(path, "rb");
	CHECK(f);
	size = fread(bytes, 1, sizeof(bytes), f);
	CHECK(size < sizeof(bytes));
	fclose(f);
	status = decode_whole(d, bytes, size, image, &v);
	CHECK_EQ(status, v.reason ? DECODE_BAD_INPUT : DECODE_OK);
	return v;
}

TEST(what_pillow_reads_has_its_pixels)
{
	struct decoder *d = decoder_open(NULL);
	FILE *f = fopen("tests/twin/pillow_hashes.txt", "r");
	char line[256], name[64];
	int count = 0;

	CHECK(d && f);
	while (fgets(line, sizeof(line), f)) {
		struct image image;
		uint32_t width, height;
		uint64_t want;

		if (sscanf(line, "odd %63s %" SCNu32 " %" SCNu32 " %" SCNx64, name, &width, &height, &want) != 4)
			continue;
		CHECK_STR(run_file(d, name, &image).message, "");
		CHECK_EQ(image.width, width);
		CHECK_EQ(image.height, height);
		CHECK_EQ(prng_hash(image.pixels, 3 * (size_t)width * height), want);
		free((void *)(uintptr_t)image.pixels);
		count++;
	}
	fclose(f);
	CHECK_EQ(count, 8);
	decoder_close(d);
}

TEST(what_is_bad_says_why)
{
	static const struct {
		const char *name;
		int reason;
		const char *message;
	} rows[] = {
		{"empty.jpg", SHARD_MISS_EMPTY, "is empty (0 bytes)"},
		{"gray16.png", SHARD_MISS_UNSUPPORTED,
		 "PNG is gray with 16 bits: --dtype u16 packs them all; or convert it to 8 bits"},
		{"not_an_image.jpg", SHARD_MISS_NOT_AN_IMAGE, NULL},
		{"truncated.jpg", SHARD_MISS_TRUNCATED, "JPEG data ends early: Premature end of JPEG file"},
	};
	struct decoder *d = decoder_open(NULL);

	CHECK(d);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct image image;
		struct decode_verdict v = run_file(d, rows[i].name, &image);

		CHECK_EQ(v.reason, rows[i].reason);
		if (rows[i].message)
			CHECK_STR(v.message, rows[i].message);
		else
			CHECK(strstr(v.message, ": not an image"));
		free((void *)(uintptr_t)image.pixels);
	}
	decoder_close(d);
}

TEST_MAIN()
