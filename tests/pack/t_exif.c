/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_exif.c - the orientation is found, and no byte outside of the file is read, however short it is
 * cut
 *
 * Each prefix is copied to memory of its own size, where a sanitizer sees what is read behind it.
 * That orientations do to pixels what Pillow does is cli/pack_pixels.sh's to say.
 */
#include "tools/shardpack/format/exif.h"

#include "tests/pack/kept.h"
#include "tests/pack/prng.h"
#include "tests/test.h"
#include "tools/shardpack/image/turn.h"

#define TIFF_LE "II*\0\x08\0\0\0\x02\0\0\x01\x03\0\x01\0\0\0\x07\0\0\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
#define TIFF_BE "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"
#define TIFF_1	"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x01\0\0"

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
	{"BMP", FILE_OF("BM\0\0\0\0\0\0\0\0" TIFF_BE), 1, 0},
};

TEST(every_prefix_of_every_file)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		for (size_t n = 0; n <= samples[i].size; n++) {
			const struct sample *s = &samples[i];
			uint8_t *file = malloc(n ? n : 1);

			CHECK(file);
			memcpy(file, s->bytes, n);
			STORY("%s, the first %zu of %zu bytes", s->name, n, s->size);
			CHECK_EQ(exif_orientation(file, n), n < s->whole ? 1 : s->orientation);
			CHECK_EQ(exif_stated(file, n), !s->whole || n < s->whole ? 0 : s->orientation);
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
			got = exif_orientation(file, size);
			CHECK(got >= 1 && got <= 8);
			free(file);
		}
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
			const struct image_sink to = kept_sink(&k), *sink = turn_sink(&t, o, &to);
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
