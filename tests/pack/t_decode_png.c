/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_decode_png.c - PNG: every kind gives the samples that were put in, and no damage passes
 */
#include "shard_inspect.h"
#include "tests/pack/make_png.h"

static const struct png_kind kinds[] = {
	{PNG_COLOR_TYPE_GRAY, 1, "gray 1"},
	{PNG_COLOR_TYPE_GRAY, 2, "gray 2"},
	{PNG_COLOR_TYPE_GRAY, 4, "gray 4"},
	{PNG_COLOR_TYPE_GRAY, 8, "gray 8"},
	{PNG_COLOR_TYPE_GRAY_ALPHA, 8, "gray alpha 8"},
	{PNG_COLOR_TYPE_GRAY_ALPHA, 16, "gray alpha 16"},
	{PNG_COLOR_TYPE_PALETTE, 1, "palette 1"},
	{PNG_COLOR_TYPE_PALETTE, 2, "palette 2"},
	{PNG_COLOR_TYPE_PALETTE, 4, "palette 4"},
	{PNG_COLOR_TYPE_PALETTE, 8, "palette 8"},
	{PNG_COLOR_TYPE_RGB, 8, "rgb 8"},
	{PNG_COLOR_TYPE_RGB, 16, "rgb 16"},
	{PNG_COLOR_TYPE_RGB_ALPHA, 8, "rgb alpha 8"},
	{PNG_COLOR_TYPE_RGB_ALPHA, 16, "rgb alpha 16"},
};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* What a decoder must make of it. */
static uint8_t sample_at(struct png_kind k, uint64_t i, int c)
{
	bool gray = !(k.colour & PNG_COLOR_MASK_COLOR);
	unsigned v = value_at(k.bits, i, gray || k.colour == PNG_COLOR_TYPE_PALETTE ? 0 : c);

	if (k.colour == PNG_COLOR_TYPE_PALETTE) {
		png_color p = palette_at((int)v);

		return c == 0 ? p.red : c == 1 ? p.green : p.blue;
	}
	return (uint8_t)(k.bits == 16 ? v >> 8 : v * 255 / ((1u << k.bits) - 1));
}

TEST(every_kind_gives_its_samples)
{
	static const uint32_t sizes[][2] = {{1, 1}, {7, 5}, {33, 17}, {2, 300}, {500, 2}};
	struct decoder *d = decoder_open(NULL);

	CHECK(d);
	for (size_t i = 0; i < KIND_COUNT * 10; i++) {
		struct png_kind k = kinds[i % KIND_COUNT];
		const uint32_t *size = sizes[i / KIND_COUNT % 5];
		bool interlaced = i / KIND_COUNT >= 5;
		struct file f = make_png(k, size[0], size[1], interlaced, 1 << (k.bits & 15));
		struct decode_verdict v;
		struct image image;

		STORY("%s, %ux%u, interlaced %d", k.name, size[0], size[1], interlaced);
		CHECK_EQ(decode_whole(d, f.bytes, f.size, &image, &v), DECODE_OK);
		CHECK_EQ(image.width, size[0]);
		CHECK_EQ(image.height, size[1]);
		for (uint64_t n = 0; n < size[0] * size[1] * 3; n++)
			CHECK_EQ(image.pixels[n], sample_at(k, n / 3, (int)(n % 3)));
		free((void *)(uintptr_t)image.pixels);
		free(f.bytes);
	}
	decoder_close(d);
}

TEST(gray_of_16_bits_is_refused)
{
	struct file f = make_png((struct png_kind){PNG_COLOR_TYPE_GRAY, 16, ""}, 9, 9, false, 0);
	struct decoded r = decode_fresh(f, NULL);

	check_bad(&r, SHARD_MISS_UNSUPPORTED,
		  "PNG is gray with 16 bits: --dtype u16 packs them all; or convert it to 8 bits");
	free(f.bytes);
}

TEST(limits_hold)
{
	struct file f = make_png((struct png_kind){PNG_COLOR_TYPE_RGB, 8, ""}, 200, 100, false, 0);
	struct decode_options pixels = {.max_pixels = 19999}, side = {.max_side = 199};
	struct decoded r = decode_fresh(f, &pixels);

	check_bad(&r, SHARD_MISS_LIMIT,
		  "is 200 x 100 = 20000 pixels: more than the limit of 19999; --limit pixels=20000 takes it");
	r = decode_fresh(f, &side);
	check_bad(&r, SHARD_MISS_LIMIT,
		  "is 200 x 100 pixels: a side is longer than the limit of 199; --limit side=200 takes it");
	memset(f.bytes + 16, 0x7f, 8); /* 2139062143 x 2139062143, and a checksum that fits */
	put_be32(f.bytes + 29, (uint32_t)crc32(0, f.bytes + 12, 17));
	r = decode_fresh(f, NULL);
	check_bad(&r, SHARD_MISS_LIMIT, "is 2139062143 x 2139062143 pixels");
	free(f.bytes);
}

TEST(an_index_beyond_the_palette_is_bad)
{
	for (int interlaced = 0; interlaced < 2; interlaced++) {
		struct file f = make_png((struct png_kind){PNG_COLOR_TYPE_PALETTE, 2, ""}, 20, 20, interlaced, 3);
		struct decoded r = decode_fresh(f, NULL);

		check_bad(&r, SHARD_MISS_DAMAGED, "palette index 3, but the palette ends at 2");
		free(f.bytes);
	}
}

TEST(every_cut_is_noticed)
{
	struct file f = make_png(kinds[KIND_COUNT - 2], 20, 20, true, 0);
	struct decoder *d = decoder_open(NULL);

	for (size_t size = 8; size < f.size; size++) {
		struct file cut = file_copy(f.bytes, size);
		struct decoded r = decode(d, cut);

		STORY("%zu of %zu bytes", size, f.size);
		free(cut.bytes);
		check_bad(&r, SHARD_MISS_TRUNCATED, "PNG data ends early: at least ");
	}
	CHECK_EQ(decode(d, f).status, DECODE_OK);
	decoder_close(d);
	free(f.bytes);
}

/* Metadata may change; the pixels are protected by two checksums. */
TEST(no_flipped_bit_changes_a_pixel)
{
	struct decoder *used = decoder_open(NULL);

	for (size_t k = 0; k < KIND_COUNT; k += 3) {
		struct file f = make_png(kinds[k], 15, 9, k % 2, 1 << (kinds[k].bits & 15));
		struct decoded good = decode_fresh(f, NULL);

		CHECK_EQ(good.status, DECODE_OK);
		for (size_t bit = 0; bit < f.size * 8; bit++) {
			struct decoded r, fresh;

			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			r = decode(used, f);
			fresh = decode_fresh(f, NULL);
			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			STORY("%s, bit %zu", kinds[k].name, bit);
			check_same(&r, &fresh);
			CHECK(r.status == DECODE_BAD_INPUT || r.hash == good.hash);
		}
		free(f.bytes);
	}
	decoder_close(used);
}

/* zlib's own checksum, when the chunk's around it is right. */
TEST(a_wrong_sum_of_the_pixels_is_bad)
{
	struct file f = make_png(kinds[10], 15, 9, false, 0);
	size_t end = f.size - 12 - 4; /* IEND is 12 bytes, the CRC of IDAT 4 */
	size_t begin = end;
	struct decoded r;

	while (memcmp(f.bytes + begin, "IDAT", 4))
		begin--;
	f.bytes[end - 1] ^= 1;
	put_be32(f.bytes + end, (uint32_t)crc32(0, f.bytes + begin, (uInt)(end - begin)));
	r = decode_fresh(f, NULL);
	check_bad(&r, SHARD_MISS_DECODE, "PNG cannot be decoded: IDAT: incorrect data check");
	free(f.bytes);
}

TEST(broken_metadata_is_harmless)
{
	struct file good = make_png(kinds[3], 15, 9, false, 0), f;
	struct decoded want = decode_fresh(good, NULL), r;
	static const char *const names[] = {"tRNS", "iCCP", "eXIf", "pHYs", "tEXt"};

	CHECK_EQ(want.status, DECODE_OK);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		STORY("%s", names[i]);
		f = with_chunk(file_copy(good.bytes, good.size), "IDAT", names[i], "nonsense");
		r = decode_fresh(f, NULL);
		check_same(&r, &want);
		free(f.bytes);
	}
	free(good.bytes);
}

TEST(pixels_in_two_places_are_bad)
{
	struct file f = make_png(kinds[3], 15, 9, false, 0);
	struct decoded r;

	f = with_chunk(f, "IEND", "tEXt", "in between");
	f = with_chunk(f, "IEND", "IDAT", "and more");
	r = decode_fresh(f, NULL);
	check_bad(&r, SHARD_MISS_DECODE, "Too many IDATs found");
	free(f.bytes);
}

TEST_MAIN()
