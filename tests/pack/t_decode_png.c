/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_decode_png.c - PNG: every kind gives the samples that were put in, and no damage passes
 */
#include <png.h>
#include <zlib.h>

#include "tests/pack/decoded.h"

struct kind {
	int colour, bits;
	const char *name;
};

static const struct kind kinds[] = {
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

static void on_write(png_structp png, png_bytep bytes, size_t size)
{
	struct file *f = png_get_io_ptr(png);

	f->bytes = realloc(f->bytes, f->size + size);
	CHECK(f->bytes);
	memcpy(f->bytes + f->size, bytes, size);
	f->size += size;
}

static void on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static int channels_of(int colour)
{
	return colour == PNG_COLOR_TYPE_RGB	     ? 3
	       : colour == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
	       : colour == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
						     : 1;
}

/* Entry i of every palette. */
static png_color palette_at(int i)
{
	return (png_color){(png_byte)(i * 7 + 1), (png_byte)(255 - i), (png_byte)(i * 31)};
}

/* The value, of `bits` bits, of channel c of pixel i. */
static unsigned value_at(int bits, uint64_t i, int c)
{
	return (unsigned)(prng_at((uint64_t)c, i) & ((1u << bits) - 1));
}

/* With colour_count below 2^bits, a palette lacks its last entries. */
static struct file make_png(struct kind k, uint32_t width, uint32_t height, bool interlaced, int colour_count)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, on_warning);
	png_infop info = png_create_info_struct(png);
	int passes, channels = channels_of(k.colour);
	uint8_t row[8 * 512], alphas[2] = {0, 128};
	struct file f = {NULL, 0};
	png_color palette[256];

	png_set_write_fn(png, &f, on_write, NULL);
	png_set_IHDR(png, info, width, height, k.bits, k.colour, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	if (k.colour == PNG_COLOR_TYPE_PALETTE) {
		for (int i = 0; i < colour_count; i++)
			palette[i] = palette_at(i);
		png_set_PLTE(png, info, palette, colour_count);
		png_set_tRNS(png, info, alphas, 2, NULL); /* transparency must change nothing */
	}
	png_set_gAMA(png, info, 1.0); /* nor may gamma */
	png_write_info(png, info);
	passes = png_set_interlace_handling(png);
	if (k.bits < 8)
		png_set_packing(png);
	for (int pass = 0; pass < passes; pass++)
		for (uint32_t y = 0; y < height; y++) {
			for (uint32_t i = 0; i < width * (uint32_t)channels; i++) {
				unsigned v = value_at(k.bits, y * width + i / (uint32_t)channels,
						      (int)(i % (uint32_t)channels));

				if (k.bits == 16) {
					row[2 * i] = (uint8_t)(v >> 8);
					row[2 * i + 1] = (uint8_t)v;
				} else {
					row[i] = (uint8_t)v;
				}
			}
			png_write_row(png, row);
		}
	png_write_end(png, info);
	png_destroy_write_struct(&png, &info);
	return f;
}

/* What a decoder must make of it. */
static uint8_t sample_at(struct kind k, uint64_t i, int c)
{
	bool gray = !(k.colour & PNG_COLOR_MASK_COLOR);
	unsigned v = value_at(k.bits, i, gray || k.colour == PNG_COLOR_TYPE_PALETTE ? 0 : c);

	if (k.colour == PNG_COLOR_TYPE_PALETTE) {
		png_color p = palette_at((int)v);

		return c == 0 ? p.red : c == 1 ? p.green : p.blue;
	}
	return (uint8_t)(k.bits == 16 ? v >> 8 : v * 255 / ((1u << k.bits) - 1));
}

static void put_be32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* `f` with one more chunk in front of the first one called `before`; frees `f`. */
static struct file with_chunk(struct file f, const char *before, const char *name, const char *data)
{
	uint32_t size = (uint32_t)strlen(data);
	uint8_t chunk[64];
	struct file out;
	size_t at = 8;

	CHECK(size <= sizeof(chunk) - 12);
	while (memcmp(f.bytes + at + 4, before, 4))
		at += 12 + ((size_t)f.bytes[at + 2] << 8 | f.bytes[at + 3]);
	put_be32(chunk, size);
	memcpy(chunk + 4, name, 4);
	memcpy(chunk + 8, data, size);
	put_be32(chunk + 8 + size, (uint32_t)crc32(0, chunk + 4, 4 + size));
	out = file_edit(f, at, 0, chunk, 12 + size);
	free(f.bytes);
	return out;
}

TEST(every_kind_gives_its_samples)
{
	static const uint32_t sizes[][2] = {{1, 1}, {7, 5}, {33, 17}, {2, 300}, {500, 2}};
	struct decoder *d = decoder_open(NULL);

	CHECK(d);
	for (size_t i = 0; i < KIND_COUNT * 10; i++) {
		struct kind k = kinds[i % KIND_COUNT];
		const uint32_t *size = sizes[i / KIND_COUNT % 5];
		bool interlaced = i / KIND_COUNT >= 5;
		struct file f = make_png(k, size[0], size[1], interlaced, 1 << (k.bits & 15));
		struct decode_verdict v;
		struct image image;

		STORY("%s, %ux%u, interlaced %d", k.name, size[0], size[1], interlaced);
		CHECK_EQ(decoder_run(d, f.bytes, f.size, &image, &v), DECODE_OK);
		CHECK_EQ(image.width, size[0]);
		CHECK_EQ(image.height, size[1]);
		for (uint64_t n = 0; n < size[0] * size[1] * 3; n++)
			CHECK_EQ(image.pixels[n], sample_at(k, n / 3, (int)(n % 3)));
		free(f.bytes);
	}
	decoder_close(d);
}

TEST(gray_of_16_bits_is_refused)
{
	struct file f = make_png((struct kind){PNG_COLOR_TYPE_GRAY, 16, ""}, 9, 9, false, 0);
	struct decoded r = decode_fresh(f, NULL);

	check_bad(&r, SHARD_MISS_UNSUPPORTED, "PNG is gray with 16 bits: convert it to 8 bits");
	free(f.bytes);
}

TEST(limits_hold)
{
	struct file f = make_png((struct kind){PNG_COLOR_TYPE_RGB, 8, ""}, 200, 100, false, 0);
	struct decode_options pixels = {.max_pixels = 19999}, side = {.max_side = 199};
	struct decoded r = decode_fresh(f, &pixels);

	check_bad(&r, SHARD_MISS_LIMIT, "is 200 x 100 = 20000 pixels: more than the limit of 19999");
	r = decode_fresh(f, &side);
	check_bad(&r, SHARD_MISS_LIMIT, "is 200 x 100 pixels: a side is longer than the limit of 199");
	memset(f.bytes + 16, 0x7f, 8); /* 2139062143 x 2139062143, and a checksum that fits */
	put_be32(f.bytes + 29, (uint32_t)crc32(0, f.bytes + 12, 17));
	r = decode_fresh(f, NULL);
	check_bad(&r, SHARD_MISS_LIMIT, "is 2139062143 x 2139062143 pixels");
	free(f.bytes);
}

TEST(an_index_beyond_the_palette_is_bad)
{
	for (int interlaced = 0; interlaced < 2; interlaced++) {
		struct file f = make_png((struct kind){PNG_COLOR_TYPE_PALETTE, 2, ""}, 20, 20, interlaced, 3);
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
