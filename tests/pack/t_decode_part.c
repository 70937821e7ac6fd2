/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_decode_part.c - a part of an image, streamed, has the pixels and the verdict of the whole image
 *
 * The JPEG decoder is asked to leave out what is not wanted, and interpolates colours across the
 * cut; so every kind of coding and sampling is tried, windows at every edge, and damage in what is
 * left out.
 */
#include "shard_inspect.h"
#include "tests/pack/decoded.h"
#include "tests/pack/kept.h"

#include <jpeglib.h>
#include <png.h>

struct coding {
	int components, luma_h, luma_v; /* other components have 1 x 1 */
	int restarts, quality;
	bool progressive, arithmetic, apart; /* apart: each component has a scan of its own */
};

static struct file make_jpeg(const struct coding *k, uint32_t width, uint32_t height, uint64_t seed)
{
	static const jpeg_scan_info apart[] = {
		{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}, {1, {3}, 0, 63, 0, 0}};
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	unsigned char *bytes = NULL;
	unsigned long size = 0;
	struct file f;

	c.err = jpeg_std_error(&errors);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &bytes, &size);
	c.image_width = width;
	c.image_height = height;
	c.input_components = k->components;
	c.in_color_space = k->components == 1 ? JCS_GRAYSCALE : k->components == 3 ? JCS_RGB : JCS_CMYK;
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, k->quality, TRUE);
	c.comp_info[0].h_samp_factor = k->luma_h;
	c.comp_info[0].v_samp_factor = k->luma_v;
	c.restart_interval = (unsigned)k->restarts;
	c.arith_code = k->arithmetic;
	if (k->progressive)
		jpeg_simple_progression(&c);
	if (k->apart) {
		c.scan_info = apart;
		c.num_scans = k->components;
	}
	jpeg_start_compress(&c, TRUE);
	while (c.next_scanline < height) {
		uint8_t row[4 * 400];
		JSAMPROW rows = row;

		/* Strong colours that change at every pixel: a neighbour too few is seen. */
		prng_fill(seed + c.next_scanline, row, width * (size_t)k->components);
		jpeg_write_scanlines(&c, &rows, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	f = file_copy(bytes, size);
	free(bytes);
	return f;
}

/* The whole image and a part of it through the same decoder.  Returns the status that both have. */
static enum decode_status check_part(struct decoder *d, struct file f, struct image_window want)
{
	struct kept k = {.want = want, .channels = IMAGE_CHANNELS};
	const struct image_sink sink = kept_sink(&k);
	struct decode_verdict whole, part;
	struct image image;
	enum decode_status status = decode_whole(d, f.bytes, f.size, &image, &whole);

	CHECK_EQ(decoder_stream(d, DECODE_RGB, NULL, f.bytes, f.size, &sink, &part), status);
	CHECK_STR(part.message, whole.message);
	CHECK_EQ(part.reason, whole.reason);
	if (status == DECODE_OK) {
		CHECK_EQ(k.width, image.width);
		CHECK_EQ(k.height, image.height);
		CHECK_EQ(k.row_count, k.want.height);
		for (uint32_t y = 0; y < k.want.height; y++)
			CHECK_MEM(k.pixels + 3 * (size_t)k.want.width * y,
				  image.pixels + 3 * ((size_t)image.width * (k.want.y + y) + k.want.x),
				  3 * (size_t)k.want.width);
	}
	free((void *)(uintptr_t)image.pixels);
	free(k.pixels);
	return status;
}

static uint32_t up_to(uint64_t seed, uint64_t i, uint32_t limit)
{
	return 1 + (uint32_t)(prng_at(seed, i) % limit);
}

static struct image_window choose_window(uint64_t i, uint32_t width, uint32_t height)
{
	struct image_window w = {.width = up_to(1, i, width), .height = up_to(2, i, height)};

	w.x = i % 4 == 0 ? 0 : i % 4 == 1 ? width - w.width : up_to(3, i, width - w.width + 1) - 1;
	w.y = i / 4 % 4 == 0 ? 0 : i / 4 % 4 == 1 ? height - w.height : up_to(4, i, height - w.height + 1) - 1;
	return w;
}

static struct coding choose_coding(uint64_t i)
{
	struct coding k = {.components = i % 13 == 0   ? 1
					 : i % 17 == 0 ? 4
						       : 3,
			   .luma_h = (int)up_to(5, i, i % 5 ? 2 : 4),
			   .luma_v = (int)up_to(6, i, i % 5 ? 2 : 4),
			   .restarts = i % 3 ? 0 : (int)up_to(7, i, 9),
			   .quality = (int)up_to(8, i, 100)};

	if (k.luma_h == 3 || k.components == 4)
		k.luma_h = 2;
	if (k.luma_v == 3 || k.components == 4)
		k.luma_v = 1;
	if (k.luma_h * k.luma_v > 8) /* the most that a scan of three components may hold, less the other two */
		k.luma_v = 1;
	k.progressive = i % 7 == 3;
	k.arithmetic = i % 11 == 5;
	k.apart = i % 7 == 5;
	return k;
}

#define STORY_OF(k, w, h, win)                                                                                  \
	STORY("%d components, %dx%d, restarts %d, quality %d%s%s%s, %ux%u, window %u,%u %ux%u", (k).components, \
	      (k).luma_h, (k).luma_v, (k).restarts, (k).quality, (k).progressive ? ", progressive" : "",        \
	      (k).arithmetic ? ", arithmetic" : "", (k).apart ? ", scans apart" : "", w, h, (win).x, (win).y,   \
	      (win).width, (win).height)

TEST(part_of_a_jpeg_is_that_part)
{
	struct decoder *d = decoder_open(NULL);

	CHECK(d);
	for (uint64_t i = 0; i < 1500; i++) {
		struct coding k = choose_coding(i);
		uint32_t width = up_to(9, i, i % 2 ? 60 : 400), height = up_to(10, i, i % 3 ? 60 : 400);
		struct file f = make_jpeg(&k, width, height, i);
		struct image_window w = choose_window(i, width, height);

		STORY_OF(k, width, height, w);
		CHECK_EQ(check_part(d, f, w), DECODE_OK);
		free(f.bytes);
	}
	decoder_close(d);
}

/*
 * Bytes changed, left out, or the end missing; nearly always outside of the window, which is small.
 */
static void check_damaged(enum decode_accept accept, uint64_t count, unsigned good_at_least, unsigned bad_at_least)
{
	struct decoder *d = decoder_open(&(struct decode_options){.accept = accept});
	unsigned good = 0, bad = 0;

	CHECK(d);
	for (uint64_t i = 0; i < count; i++) {
		struct coding k = choose_coding(i);
		struct file f = make_jpeg(&k, 160, 120, i % 40), hurt;
		struct image_window w = choose_window(i, 160, 120);
		size_t at = prng_at(12, i) % f.size, cut = i % 3 == 0 ? 1 : i % 3 == 1 ? f.size - at : up_to(13, i, 40);
		uint8_t with = (uint8_t)prng_at(14, i);

		if (cut > f.size - at)
			cut = f.size - at;
		hurt = file_edit(f, at, cut, &with, i % 3 == 0);
		STORY_OF(k, 160, 120, w);
		if (check_part(d, hurt, w) == DECODE_OK)
			good++;
		else
			bad++;
		free(f.bytes);
		free(hurt.bytes);
	}
	CHECK(good > good_at_least && bad > bad_at_least);
	decoder_close(d);
}

TEST(damage_outside_of_the_part_is_seen_as_before)
{
	check_damaged(ACCEPT_NONE, 3000, 100, 1000);
}

/* What libjpeg makes up has the same pixels, too. */
TEST(damage_outside_of_the_part_is_accepted_as_before)
{
	check_damaged(ACCEPT_EOI, 500, 100, 200);
	check_damaged(ACCEPT_WARNINGS, 2000, 1200, 30);
}

TEST(a_verdict_tells_what_was_accepted)
{
	struct coding k = {.components = 3, .luma_h = 2, .luma_v = 2, .quality = 80}, arithmetic = k, apart = k;
	struct decode_options eoi = {.accept = ACCEPT_EOI}, warnings = {.accept = ACCEPT_WARNINGS};
	struct decoded r;
	struct file f = make_jpeg(&k, 60, 40, 1), cut = {f.bytes, f.size - 2};

	r = decode_fresh(f, &warnings);
	CHECK_EQ(r.verdict.reason, 0);
	CHECK_STR(r.verdict.message, "");
	r = decode_fresh(cut, &eoi);
	CHECK_EQ(r.status, DECODE_OK);
	CHECK_EQ(r.verdict.reason, SHARD_MISS_TRUNCATED);
	CHECK_STR(r.verdict.message, "JPEG lacks its end-of-image marker, and nothing else");
	free(f.bytes);

	STORY("an arithmetic decoder makes up what is missing and does not say so");
	arithmetic.arithmetic = true;
	f = make_jpeg(&arithmetic, 60, 40, 1);
	cut = (struct file){f.bytes, f.size - 2};
	r = decode_fresh(cut, &eoi);
	CHECK_EQ(r.status, DECODE_BAD_INPUT);
	CHECK_EQ(r.verdict.reason, SHARD_MISS_TRUNCATED);
	CHECK_STR(r.verdict.message,
		  "JPEG data ends early: pixels may be made up, of arithmetic coding that cannot be told");
	r = decode_fresh(cut, &warnings);
	CHECK_EQ(r.status, DECODE_OK);
	CHECK_EQ(r.verdict.reason, SHARD_MISS_DAMAGED);
	free(f.bytes);

	STORY("a component whose scan is not there");
	apart.apart = true;
	f = make_jpeg(&apart, 60, 40, 1);
	for (cut = f, cut.size -= 3; memcmp(cut.bytes + cut.size, "\xff\xda", 2) != 0;)
		cut.size--;
	r = decode_fresh(cut, &eoi);
	CHECK_EQ(r.status, DECODE_BAD_INPUT);
	CHECK_STR(r.verdict.message, "JPEG data ends early: scans are missing");
	free(f.bytes);
}

static void on_write(png_structp png, png_bytep bytes, size_t size)
{
	struct file *f = png_get_io_ptr(png);

	f->bytes = realloc(f->bytes, f->size + size);
	CHECK(f->bytes);
	memcpy(f->bytes + f->size, bytes, size);
	f->size += size;
}

static struct file make_png(int colour, bool interlaced, uint32_t width, uint32_t height, uint64_t seed)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	png_color palette[200];
	uint8_t *pixels = malloc(4 * (size_t)width * height);
	struct file f = {NULL, 0};
	size_t row_bytes = width * (colour == PNG_COLOR_TYPE_RGB ? 3u : colour == PNG_COLOR_TYPE_RGB_ALPHA ? 4u : 1u);

	CHECK(png && info && pixels && !setjmp(png_jmpbuf(png)));
	prng_fill(seed, pixels, 4 * (size_t)width * height);
	prng_fill(seed, (uint8_t *)palette, sizeof(palette));
	for (size_t i = 0; colour == PNG_COLOR_TYPE_PALETTE && i < row_bytes * height; i++)
		pixels[i] = (uint8_t)(pixels[i] % 200 + (seed % 5 == 0 && i == row_bytes * height - 1 ? 56 : 0));
	png_set_write_fn(png, &f, on_write, NULL);
	png_set_IHDR(png, info, width, height, 8, colour, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	if (colour == PNG_COLOR_TYPE_PALETTE)
		png_set_PLTE(png, info, palette, 200);
	png_set_check_for_invalid_index(png, 0);
	png_write_info(png, info);
	for (int pass = png_set_interlace_handling(png); pass; pass--)
		for (uint32_t y = 0; y < height; y++)
			png_write_row(png, pixels + y * row_bytes);
	png_write_end(png, info);
	png_destroy_write_struct(&png, &info);
	free(pixels);
	return f;
}

/* Cut short, changed in a byte, or as it was. */
TEST(part_of_a_png_is_that_part)
{
	static const int colours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_RGB,
				      PNG_COLOR_TYPE_RGB_ALPHA};
	struct decoder *d = decoder_open(NULL);
	unsigned good = 0, bad = 0;

	CHECK(d);
	for (uint64_t i = 0; i < 1000; i++) {
		uint32_t width = up_to(20, i, 60), height = up_to(21, i, 60);
		struct file f = make_png(colours[i % 4], i / 4 % 3 == 0, width, height, i);
		struct image_window w = choose_window(i, width, height);

		if (i % 4 == 2)
			f.size -= up_to(22, i, (uint32_t)f.size - 40);
		if (i % 8 == 3)
			f.bytes[prng_at(23, i) % f.size] ^= (uint8_t)(1u << i / 8 % 8);
		STORY("png of type %d, %ux%u, window %u,%u %ux%u, image %" PRIu64, colours[i % 4], width, height, w.x,
		      w.y, w.width, w.height, i);
		if (check_part(d, f, w) == DECODE_OK)
			good++;
		else
			bad++;
		free(f.bytes);
	}
	CHECK(good > 300 && bad > 200);
	decoder_close(d);
}

TEST_MAIN()
