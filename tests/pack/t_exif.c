/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_exif.c - the orientation is found, and no byte outside of the file is read, however short it is
 * cut
 *
 * Each prefix is copied to memory of its own size, where a sanitizer sees what is read behind it.
 * That orientations do to pixels what Pillow does is cli/pack_pixels.sh's to say, and that Pillow
 * finds the same ones twin/orientation.py's.
 */
#include "tools/shardpack/images/images.h"

#include <zlib.h>

#include "tests/pack/kept.h"
#include "tests/pack/prng.h"
#include "tests/test.h"

#define TIFF_LE "II*\0\x08\0\0\0\x02\0\0\x01\x03\0\x01\0\0\0\x07\0\0\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
#define TIFF_BE "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"
#define TIFF_1	"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x01\0\0"

/* Entries for an orientation that say none, one that is empty, and of a type that Pillow skips. */
#define TIFF_9	   "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x09\0\0"
#define TIFF_EMPTY "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\0\0\x08\0\0"
#define TIFF_ODD   "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x0e\0\0\0\x01\0\x08\0\0"
#define TIFF_BAD   "MM\0+\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"

#define XAP	 "http://ns.adobe.com/xap/1.0/\0"
#define XMP_6	 "<x tiff:Orientation=\"6\" />"
#define XMP_3	 "<tiff:Orientation>3</x>..."
#define JPEG_XMP "\xff\xd8\xff\xe1\0\x39" XAP
#define PNG_ITXT "\x89PNG\r\n\x1a\n\0\0\0\x30iTXtXML:com.adobe.xmp\0\0\0\0\0"
#define PNG	 "\x89PNG\r\n\x1a\n\0\0\0"
#define PNG_RAW	 "tEXtRaw profile type exif\0\nexif\n22\n"
#define WEBP_8	 "RIFF\x38\0\0\0WEBPVP8X\x0a\0\0\0"
#define WEBP_XMP "\0\0\0\0\0\0\0\0\0XMP \x1a\0\0\0"

#define FILE_OF(s) s, sizeof(s) - 1

/* `whole`: from so many bytes on the orientation is there. */
static const struct sample {
	const char *name, *bytes;
	size_t size;
	uint32_t orientation;
	size_t whole;
} samples[] = {
	{"JPEG",
	 FILE_OF("\xff\xd8\xff\xe0\0\x04JF\xff\xff\xe1\0\x2a"
		 "Exif\0\0" TIFF_LE "\xff\xda\0\x02"),
	 6, 53},
	{"JPEG, big-endian",
	 FILE_OF("\xff\xd8\xff\xe1\0\x1e"
		 "Exif\0\0" TIFF_BE "\xff\xd9"),
	 8, 34},
	{"JPEG, behind the scan",
	 FILE_OF("\xff\xd8\xff\xda\0\x02\xff\xe1\0\x1e"
		 "Exif\0\0" TIFF_BE),
	 1, 0},
	{"JPEG, a length of 0",
	 FILE_OF("\xff\xd8\xff\xe1\0\0"
		 "Exif\0\0" TIFF_BE),
	 1, 0},
	{"PNG",
	 FILE_OF("\x89PNG\r\n\x1a\n\0\0\0\0abcd1234\0\0\0\x16"
		 "eXIf" TIFF_BE "1234\0\0\0\0IEND1234"),
	 8, 54},
	{"PNG, behind its end",
	 FILE_OF("\x89PNG\r\n\x1a\n\0\0\0\0IEND1234\0\0\0\x16"
		 "eXIf" TIFF_BE "1234"),
	 1, 0},
	{"PNG, a length of 2^32 - 1",
	 FILE_OF("\x89PNG\r\n\x1a\n\xff\xff\xff\xff"
		 "eXIf" TIFF_BE "1234"),
	 1, 0},
	{"WebP",
	 FILE_OF("RIFF\x50\0\0\0WEBPVP8X\x0a\0\0\0\x08\0\0\0\0\0\0\0\0\0abcd\x01\0\0\0x\0EXIF\x16\0\0\0" TIFF_BE), 8,
	 70},
	{"WebP without the flag", FILE_OF("RIFF\x50\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0EXIF\x16\0\0\0" TIFF_BE),
	 1, 0},
	{"JPEG, which says that it is upright",
	 FILE_OF("\xff\xd8\xff\xe1\0\x1e"
		 "Exif\0\0" TIFF_1 "\xff\xd9"),
	 1, 34},
	{"JPEG, XMP", FILE_OF(JPEG_XMP XMP_6 "\xff\xd9"), 6, 61},
	{"JPEG, XMP as an element", FILE_OF(JPEG_XMP XMP_3 "\xff\xd9"), 3, 61},
	{"JPEG, XMP that goes on elsewhere",
	 FILE_OF("\xff\xd8\xff\xe1\0\x40http://ns.adobe.com/xmp/extension/\0" XMP_6 "\xff\xd9"), 1, 0},
	{"JPEG, EXIF that says another thing, and XMP",
	 FILE_OF("\xff\xd8\xff\xe1\0\x1e"
		 "Exif\0\0" TIFF_9 "\xff\xe1\0\x39" XAP XMP_6),
	 1, 0},
	{"JPEG, an entry without a value, and XMP",
	 FILE_OF("\xff\xd8\xff\xe1\0\x1e"
		 "Exif\0\0" TIFF_EMPTY "\xff\xe1\0\x39" XAP XMP_6),
	 6, 93},
	{"JPEG, an entry of a type that is none, and XMP",
	 FILE_OF("\xff\xd8\xff\xe1\0\x1e"
		 "Exif\0\0" TIFF_ODD "\xff\xe1\0\x39" XAP XMP_6),
	 6, 93},
	{"JPEG, EXIF that cannot be read, and XMP",
	 FILE_OF("\xff\xd8\xff\xe1\0\x1e"
		 "Exif\0\0" TIFF_BAD "\xff\xe1\0\x39" XAP XMP_6),
	 1, 0},
	{"JPEG, EXIF that says it is upright, and XMP",
	 FILE_OF("\xff\xd8\xff\xe1\0\x1e"
		 "Exif\0\0" TIFF_1 "\xff\xe1\0\x39" XAP XMP_6),
	 1, 34},
	{"JPEG, EXIF in two segments",
	 FILE_OF("\xff\xd8\xff\xe1\0\x12"
		 "Exif\0\0MM\0*\0\0\0\x08\0\x01\xff\xe1\0\x14"
		 "Exif\0\0\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"),
	 8, 44},
	{"PNG, XMP", FILE_OF(PNG_ITXT XMP_6 "1234\0\0\0\0IEND1234"), 6, 68},
	{"PNG, XMP of another language",
	 FILE_OF("\x89PNG\r\n\x1a\n\0\0\0\x31iTXtXML:com.adobe.xmp\0\0\0\xff\0\0" XMP_6 "1234"), 6, 69},
	{"PNG, EXIF as text",
	 FILE_OF(PNG "\x4d" PNG_RAW "4d4d002a00000008000101120003000000\n01 00080000"
		     "1234"),
	 8, 97},
	{"PNG, half a digit",
	 FILE_OF(PNG "\x4c" PNG_RAW "4d4d002a0000000800010112000300000001000800000"
		     "1234"),
	 1, 0},
	{"WebP, XMP", FILE_OF(WEBP_8 "\x04" WEBP_XMP XMP_6), 6, 64},
	{"WebP, XMP without the flag", FILE_OF(WEBP_8 "\x08" WEBP_XMP XMP_6), 1, 0},
	{"WebP, XMP behind the end of RIFF", FILE_OF("RIFF\x37\0\0\0WEBPVP8X\x0a\0\0\0\x04" WEBP_XMP XMP_6), 1, 0},
	{"BMP", FILE_OF("BM\0\0\0\0\0\0\0\0" TIFF_BE), 1, 0},
};

static uint32_t stated(const uint8_t *file, size_t size)
{
	uint32_t orientation = 99;

	CHECK(image_stated(file, size, EXIF_RULES_PILLOW_13, &orientation));
	return orientation;
}

TEST(every_prefix_of_every_file)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		for (size_t n = 0; n <= samples[i].size; n++) {
			const struct sample *s = &samples[i];
			uint8_t *file = malloc(n ? n : 1);

			CHECK(file);
			memcpy(file, s->bytes, n);
			STORY("%s, the first %zu of %zu bytes", s->name, n, s->size);
			CHECK_EQ(stated(file, n), !s->whole || n < s->whole ? 0 : s->orientation);
			free(file);
		}
}

/* Any bytes changed: an orientation all the same, and nothing that a sanitizer minds. */
TEST(damaged_files_have_an_orientation)
{
	uint8_t noise[4096];

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		for (uint64_t round = 0; round < 500; round++) {
			size_t size = samples[i].size;
			uint8_t *file = malloc(size);
			uint32_t got;

			CHECK(file);
			memcpy(file, samples[i].bytes, size);
			prng_fill(i * 1000 + round, noise, 16);
			for (int k = 0; k < 8; k += 2)
				file[8 + noise[k] % (size - 8)] = noise[k + 1];
			STORY("%s, round %llu", samples[i].name, (unsigned long long)round);
			CHECK(image_stated(file, size, round % 2 ? EXIF_RULES_PILLOW_12 : EXIF_RULES_PILLOW_13, &got));
			CHECK(got <= 8);
			free(file);
		}
}

/* A PNG with XMP that is compressed: `kind` as in the file, `head` between keyword and stream. */
static size_t compressed_png(uint8_t *out, const char *kind, const char *head, size_t head_bytes, const uint8_t *xmp,
			     size_t xmp_bytes)
{
	static const char keyword[] = "XML:com.adobe.xmp";
	uLongf packed = compressBound(xmp_bytes);
	uint8_t *stream = out + 16 + sizeof(keyword) + head_bytes;
	uint32_t bytes;

	CHECK_EQ(compress(stream, &packed, xmp, xmp_bytes), Z_OK);
	bytes = (uint32_t)(sizeof(keyword) + head_bytes + packed);
	memcpy(out, "\x89PNG\r\n\x1a\n", 8);
	for (int i = 0; i < 4; i++)
		out[8 + i] = (uint8_t)(bytes >> 8 * (3 - i));
	memcpy(out + 12, kind, 4);
	memcpy(out + 16, keyword, sizeof(keyword));
	memcpy(out + 16 + sizeof(keyword), head, head_bytes);
	memset(out + 16 + bytes, 0, 4);
	return 20 + bytes;
}

/* A stream that is cut counts as far as it goes; one that would fill the memory does not. */
TEST(compressed_xmp)
{
	static const size_t sizes[] = {0, 100, 5000, (1 << 20) - 26, (1 << 20) - 25, 3 << 20};
	uint8_t *xmp = malloc(4 << 20), *file = malloc(1 << 20);

	CHECK(xmp && file);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n;

		memset(xmp, ' ', sizes[i]);
		memcpy(xmp + sizes[i], XMP_6, sizeof(XMP_6) - 1);
		STORY("%zu bytes before it", sizes[i]);
		n = compressed_png(file, "zTXt", "", 1, xmp, sizes[i] + sizeof(XMP_6) - 1);
		CHECK_EQ(stated(file, n), i < 4 ? 6 : 0);
		n = compressed_png(file, "iTXt", "\1\0\0", 4, xmp, sizes[i] + sizeof(XMP_6) - 1);
		CHECK_EQ(stated(file, n), i < 4 ? 6 : 0);
		n = compressed_png(file, "iTXt", "\1\1\0", 4, xmp, sizes[i] + sizeof(XMP_6) - 1);
		CHECK_EQ(stated(file, n), 0);
		n = compressed_png(file, "zTXt", "\2", 1, xmp, sizes[i] + sizeof(XMP_6) - 1);
		CHECK_EQ(stated(file, n), 0);
	}
	free(xmp);
	free(file);
}

/* Each is small enough, together they are not: the last one is before the limit or behind it. */
TEST(many_compressed_texts)
{
	static const uint8_t said[] = XMP_6;
	uint8_t *xmp = calloc(1 << 20, 1), *large = malloc(1 << 20), last[512], *file = malloc(1 << 20);
	size_t large_bytes, last_bytes, n;

	CHECK(xmp && large && file);
	large_bytes = compressed_png(large, "zTXt", "", 1, xmp, 1 << 20) - 8;
	last_bytes = compressed_png(last, "zTXt", "", 1, said, sizeof(said) - 1) - 8;
	for (unsigned count = 60; count <= 70; count += 5) {
		STORY("%u texts before it", count);
		memcpy(file, large, 8);
		n = 8;
		for (unsigned i = 0; i < count; i++, n += large_bytes)
			memcpy(file + n, large + 8, large_bytes);
		memcpy(file + n, last + 8, last_bytes);
		CHECK_EQ(stated(file, n + last_bytes), count == 60 ? 6 : 0);
	}
	free(xmp);
	free(large);
	free(file);
}

TEST(damaged_compressed_xmp)
{
	static const uint8_t xmp[] = "<x tiff:Orientation=\"x\"/>        <x tiff:Orientation=\"6\"/>";
	uint8_t noise[16], whole[512];
	size_t size = compressed_png(whole, "iTXt", "\1\0\0", 4, xmp, sizeof(xmp) - 1);

	CHECK_EQ(stated(whole, size), 6);
	for (uint64_t round = 0; round < 5000; round++) {
		uint8_t *file = malloc(size);

		CHECK(file);
		memcpy(file, whole, size);
		prng_fill(round, noise, sizeof(noise));
		for (int k = 0; k < 4; k += 2)
			file[8 + noise[k] % (size - 8)] = noise[k + 1];
		STORY("round %llu", (unsigned long long)round);
		CHECK(stated(file, size) <= 8);
		free(file);
	}
}

/* Of two entries Pillow 12 takes the last one, and 13 the first. */
TEST(rules_of_two_pillows)
{
	static const uint8_t file[] = "\xff\xd8\xff\xe1\0\x2a"
				      "Exif\0\0II*\0\x08\0\0\0\x02\0\x12\x01\x03\0\x01\0\0\0\x03\0\0\0"
				      "\x12\x01\x03\0\x01\0\0\0\x06\0\0";
	uint32_t first, last;

	CHECK(image_stated(file, sizeof(file), EXIF_RULES_PILLOW_13, &first));
	CHECK(image_stated(file, sizeof(file), EXIF_RULES_PILLOW_12, &last));
	CHECK_EQ(first, 3);
	CHECK_EQ(last, 6);
}

static void claim_nothing(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
}

/* 3 x 2 pixels, named by their red: abc above def. */
TEST(rows_come_a_few_at_a_time)
{
	static const struct {
		uint32_t width, height;
		const char *red;
	} rows[] = {[2] = {3, 2, "cbafed"}, [3] = {3, 2, "fedcba"}, [4] = {3, 2, "defabc"}, [5] = {2, 3, "adbecf"},
		    [6] = {2, 3, "daebfc"}, [7] = {2, 3, "fcebda"}, [8] = {2, 3, "cfbead"}};
	struct turn t = {.claim = claim_nothing};

	for (uint32_t o = 2; o <= 8; o++)
		for (uint32_t at_once = 1; at_once <= 2; at_once++) {
			struct kept k = {.want = KEPT_WHOLE, .channels = 3};
			const struct image_sink to = kept_sink(&k), *sink = turn_sink(&t, o, false, &to);
			uint8_t pixels[2 * 10] = {0};
			struct image_window wanted;

			for (int i = 0; i < 6; i++) /* rows of 10 bytes, the last one no pixel's */
				for (int c = 0; c < 3; c++)
					pixels[i / 3 * 10 + i % 3 * 3 + c] = (uint8_t)("abcdef"[i] + 10 * c);
			STORY("orientation %u, %u rows at once", o, at_once);
			CHECK(sink->begin(sink->context, &(struct image_size){.width = 3, .height = 2, .scale = 1},
					  &wanted));
			CHECK(wanted.x == 0 && wanted.y == 0 && wanted.width == 3 && wanted.height == 2);
			for (uint32_t y = 0; y < 2; y += at_once)
				sink->rows(sink->context, pixels + 10 * y, 10, at_once);
			CHECK(turn_finish(&t));
			CHECK_EQ(k.width, rows[o].width);
			CHECK_EQ(k.height, rows[o].height);
			for (int i = 0; i < 6; i++)
				for (int c = 0; c < 3; c++)
					CHECK_EQ(k.pixels[3 * i + c], rows[o].red[i] + 10 * c);
			free(k.pixels);
		}
	turn_free(&t);
}

TEST_MAIN()
