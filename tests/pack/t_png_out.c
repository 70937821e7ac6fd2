/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_png_out.c - pixels written as PNG come back, packed and planar
 *
 * libpng's simplified reader, which shares no code with the writer, reads them back.
 */
#include <errno.h>
#include <png.h>

#include "tests/test.h"
#include "tools/common/png_out.h"

#define SIDE_MAX 70

static uint8_t hwc[SIDE_MAX * SIDE_MAX * 3], chw[SIDE_MAX * SIDE_MAX * 3], back[SIDE_MAX * SIDE_MAX * 3];

static void fill(uint32_t width, uint32_t height, uint32_t channels)
{
	uint32_t state = 1;

	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < width; x++)
			for (uint32_t c = 0; c < channels; c++) {
				state = state * 1664525 + 1013904223;
				hwc[(y * width + x) * channels + c] = (uint8_t)(state >> 24);
				chw[(c * height + y) * width + x] = (uint8_t)(state >> 24);
			}
}

static size_t write_png(const struct png_image *image, char **file)
{
	char error[256] = "unset";
	size_t file_bytes = 0;
	FILE *out = open_memstream(file, &file_bytes);

	CHECK(out);
	CHECK_EQ(png_write(out, image, error, sizeof(error)), 0);
	CHECK_STR(error, "");
	fclose(out);
	return file_bytes;
}

TEST(pixels_come_back)
{
	static const struct {
		uint32_t width, height, channels;
	} rows[] = {{1, 1, 1}, {1, 1, 3}, {70, 3, 3}, {3, 70, 1}, {64, 64, 3}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t w = rows[i].width, h = rows[i].height, c = rows[i].channels;
		struct png_image packed = {hwc, w, h, c, (size_t)w * c, c, 1, false},
				 planar = {chw, w, h, c, w, 1, (size_t)w * h, false};
		png_image reader = {.version = PNG_IMAGE_VERSION};
		char *first, *second;
		size_t bytes;

		STORY("%u x %u x %u", w, h, c);
		fill(w, h, c);
		bytes = write_png(&packed, &first);
		CHECK_EQ(write_png(&planar, &second), bytes);
		CHECK_MEM(first, second, bytes);
		CHECK(png_image_begin_read_from_memory(&reader, first, bytes));
		CHECK_EQ(reader.width, w);
		CHECK_EQ(reader.height, h);
		CHECK_EQ(reader.format, c == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY);
		CHECK(png_image_finish_read(&reader, NULL, back, 0, NULL));
		CHECK_MEM(back, hwc, (size_t)w * h * c);
		CHECK(!memmem(first, bytes, "tIME", 4) && !memmem(first, bytes, "tEXt", 4));
		free(first);
		free(second);
	}
}

TEST(failures_have_a_sentence)
{
	struct png_image image = {hwc, 64, 64, 3, 192, 3, 1, false};
	FILE *full = fopen("/dev/full", "w");
	char error[256];

	CHECK(full);
	fill(64, 64, 3);
	CHECK_EQ(png_write(full, &image, error, sizeof(error)), -1);
	CHECK_STR(error, "png: No space left on device");
	fclose(full);
	image.channel_count = 2;
	CHECK_EQ(png_write(stdout, &image, error, sizeof(error)), -1);
	CHECK_STR(error, "png: 2 channels; an image has 1 or 3");
	image.channel_count = 3;
	image.width = 0;
	CHECK_EQ(png_write(stdout, &image, error, sizeof(error)), -1);
	CHECK_STR(error, "png: 0 x 64 pixels; each side must be 1 to 2147483647");
}

TEST_MAIN()
