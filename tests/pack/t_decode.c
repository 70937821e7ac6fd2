/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_decode.c - JPEG, and what is no image: which are good, which are bad, and in what words
 *
 * That good pixels are the right pixels is for twin/pillow.sh and t_odd to say.
 */
#include "shard_inspect.h"
#include "tests/pack/decoded.h"
#include "tools/shardpack/images/images.h"

#include <jpeglib.h>

enum kind { BASELINE, OPTIMIZED, RESTARTS, PROGRESSIVE, MANY_SCANS, TWO_COMPONENTS };

#define MANY (1 + 3 * 63) /* the most scans that spectral selection alone can make of three components */

/* One scan for all DC, then one for each AC coefficient of each component. */
static void fill_script(jpeg_scan_info *s)
{
	*s++ = (jpeg_scan_info){3, {0, 1, 2}, 0, 0, 0, 0};
	for (int c = 0; c < 3; c++)
		for (int k = 1; k < 64; k++)
			*s++ = (jpeg_scan_info){1, {c}, k, k, 0, 0};
}

static struct file make_jpeg(enum kind kind, uint32_t width, uint32_t height)
{
	int channels = kind == TWO_COMPONENTS ? 2 : 3;
	static jpeg_scan_info script[MANY];
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
	c.input_components = channels;
	c.in_color_space = channels == 2 ? JCS_UNKNOWN : JCS_RGB;
	jpeg_set_defaults(&c);
	c.optimize_coding = kind == OPTIMIZED;
	if (kind == RESTARTS)
		c.restart_interval = 2;
	if (kind == PROGRESSIVE)
		jpeg_simple_progression(&c);
	if (kind == MANY_SCANS) {
		fill_script(script);
		c.scan_info = script;
		c.num_scans = MANY;
	}
	jpeg_start_compress(&c, TRUE);
	while (c.next_scanline < height) {
		uint8_t row[4096];
		JSAMPROW rows = row;

		CHECK(width * 3 <= sizeof(row));
		for (uint32_t i = 0; i < width * (uint32_t)channels; i++)
			row[i] =
				(uint8_t)(3 * i + 7 * c.next_scanline + (prng_byte(0, i + 997 * c.next_scanline) & 63));
		jpeg_write_scanlines(&c, &rows, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	f = file_copy(bytes, size);
	free(bytes);
	return f;
}

/* Where the n-th segment with this marker starts; the scan itself is not looked into. */
static size_t find_segment(struct file f, uint8_t marker)
{
	size_t at = 2;

	while (f.bytes[at + 1] != marker) {
		CHECK(f.bytes[at] == 0xff && f.bytes[at + 1] != 0xda);
		at += 2 + ((size_t)f.bytes[at + 2] << 8 | f.bytes[at + 3]);
	}
	return at;
}

static struct file without_segments(struct file f, uint8_t marker, int count)
{
	struct file out = file_copy(f.bytes, f.size);

	while (count--) {
		size_t at = find_segment(out, marker);
		struct file shorter =
			file_edit(out, at, 2 + ((size_t)out.bytes[at + 2] << 8 | out.bytes[at + 3]), "", 0);

		free(out.bytes);
		out = shorter;
	}
	return out;
}

static struct file patched(struct file f, size_t at, const void *with, size_t size)
{
	return file_edit(f, at, size, with, size);
}

/* Frees `f`, so that a row of a test is one line. */
static void expect_bad(struct file f, const struct decode_options *opt, int reason, const char *words)
{
	struct decoded r = decode_fresh(f, opt);

	free(f.bytes);
	check_bad(&r, reason, words);
}

static void expect_pixels_of(struct file f, struct file good)
{
	struct decoded r = decode_fresh(f, NULL), want = decode_fresh(good, NULL);

	free(f.bytes);
	CHECK_EQ(want.status, DECODE_OK);
	check_same(&r, &want);
}

TEST(what_is_no_image_is_named)
{
	static const struct {
		const char *bytes;
		size_t size;
		int reason;
		const char *words;
	} rows[] = {
		{"", 0, SHARD_MISS_EMPTY, "is empty (0 bytes)"},
		{"\xff", 1, SHARD_MISS_NOT_AN_IMAGE, "starts with ff: not an image"},
		{"\xff\xd8", 2, SHARD_MISS_NOT_AN_IMAGE, "starts with ff d8: not an image"},
		{"<!DOCTYPE html><html>", 21, SHARD_MISS_NOT_AN_IMAGE, "starts with 3c 21 44 4f 43"},
		{"BMW is a car, not a bitmap", 26, SHARD_MISS_NOT_AN_IMAGE, "starts with 42 4d 57"},
		{"RIFFsizeWAVE", 12, SHARD_MISS_NOT_AN_IMAGE, "starts with 52 49 46 46"},
		{"P3\n1 1 255\n1 2 3", 16, SHARD_MISS_UNSUPPORTED, "(P3): PPM is not supported"},
		{"II+\0\10\0\0\0", 8, SHARD_MISS_UNSUPPORTED, "(II): BigTIFF is not supported"},
		{"\0\0\0\x20"
		 "ftypheic",
		 12, SHARD_MISS_UNSUPPORTED, "HEIF is not supported"},
		{"\xff\xd8\xff", 3, SHARD_MISS_TRUNCATED, "JPEG data ends early"},
		{"\x89PNG\r\n\x1a\n", 8, SHARD_MISS_TRUNCATED, "PNG data ends early"},
		{"RIFF\4\0\0\0WEBP", 12, SHARD_MISS_DECODE, "WebP data is damaged"},
		{"RIFF\5\0\0\0WEBP", 12, SHARD_MISS_TRUNCATED, "WebP data ends early: has 12 bytes of 13"},
		{"P6\n2 1 255\nabc", 14, SHARD_MISS_TRUNCATED, "PPM data ends early: has 3 bytes of 6"},
		{"P5 1 1 65535\nab", 15, SHARD_MISS_UNSUPPORTED, "PGM has samples up to 65535: convert it to 8 bits"},
		{"P5\n#\n", 5, SHARD_MISS_DECODE, "PGM has a head without width, height and largest value"},
		{"P6\n99999 1 255\n", 15, SHARD_MISS_LIMIT,
		 "is 99999 x 1 pixels: a side is longer than the limit of 65500"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("row %zu", i);
		expect_bad(file_copy((const uint8_t *)rows[i].bytes, rows[i].size), NULL, rows[i].reason,
			   rows[i].words);
	}
}

TEST(every_cut_is_noticed)
{
	static const enum kind kinds[] = {BASELINE, RESTARTS, PROGRESSIVE};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct file f = make_jpeg(kinds[k], 40, 30);
		struct decoder *d = decoder_open(NULL);

		for (size_t size = 3; size < f.size; size++) {
			struct file cut = file_copy(f.bytes, size);
			struct decoded r = decode(d, cut);

			STORY("kind %d, %zu of %zu bytes", kinds[k], size, f.size);
			free(cut.bytes);
			check_bad(&r, SHARD_MISS_TRUNCATED, "JPEG data ends early: Premature end of JPEG file");
		}
		CHECK_EQ(decode(d, f).status, DECODE_OK);
		decoder_close(d);
		free(f.bytes);
	}
}

TEST(damage_in_the_scan_is_bad)
{
	struct file good = make_jpeg(RESTARTS, 64, 64), plain = make_jpeg(BASELINE, 64, 64);
	size_t sos = find_segment(good, 0xda), rst = sos;

	while (good.bytes[rst] != 0xff || good.bytes[rst + 1] != 0xd0)
		rst++;
	STORY("an end marker halfway");
	expect_bad(file_edit(plain, plain.size / 2, 0, "\xff\xd9", 2), NULL, SHARD_MISS_DAMAGED,
		   "damaged: Corrupt JPEG");
	STORY("a hole");
	expect_bad(file_edit(plain, find_segment(plain, 0xda) + 50, 300, "", 0), NULL, SHARD_MISS_DAMAGED, "damaged");
	STORY("a restart marker out of turn");
	expect_bad(patched(good, rst, "\xff\xd3", 2), NULL, SHARD_MISS_DAMAGED, "damaged: Corrupt JPEG");
	STORY("junk before a restart marker");
	expect_bad(file_edit(good, rst, 0, "\1\2\3\4\5\6\7", 7), NULL, SHARD_MISS_DAMAGED, "extraneous bytes");
	STORY("junk behind the last pixel, before the end marker");
	expect_bad(file_edit(plain, plain.size - 2, 0, "0123456789abcdef", 16), NULL, SHARD_MISS_DAMAGED,
		   "extraneous bytes");
	free(good.bytes);
	free(plain.bytes);
}

TEST(harmless_oddities_are_good)
{
	struct file good = make_jpeg(BASELINE, 33, 17);
	size_t jfif = find_segment(good, 0xe0), dqt = find_segment(good, 0xdb);

	STORY("bytes after the end");
	expect_pixels_of(file_edit(good, good.size, 0, "thumbnail of a camera", 21), good);
	STORY("junk between header segments");
	expect_pixels_of(file_edit(good, dqt, 0, "\0\0\0", 3), good);
	STORY("JFIF from the future");
	expect_pixels_of(patched(good, jfif + 9, "\7", 1), good);
	STORY("no Huffman tables: the standard ones, as in motion JPEG");
	expect_pixels_of(without_segments(good, 0xc4, 4), good);
	free(good.bytes);
}

TEST(unsupported_kinds_say_so)
{
	struct file good = make_jpeg(BASELINE, 33, 17);
	size_t sof = find_segment(good, 0xc0);

	STORY("12 bits");
	expect_bad(patched(good, sof + 4, "\x0c", 1), NULL, SHARD_MISS_UNSUPPORTED, "precision 12");
	STORY("lossless");
	expect_bad(patched(good, sof, "\xff\xc3", 2), NULL, SHARD_MISS_UNSUPPORTED, "not supported");
	STORY("two components");
	expect_bad(make_jpeg(TWO_COMPONENTS, 33, 17), NULL, SHARD_MISS_UNSUPPORTED, "JPEG has 2 components");
	STORY("no quantization table");
	expect_bad(without_segments(good, 0xdb, 2), NULL, SHARD_MISS_DECODE,
		   "JPEG cannot be decoded: Quantization table");
	STORY("no height");
	expect_bad(patched(good, sof + 5, "\0\0", 2), NULL, SHARD_MISS_DECODE, "Empty JPEG image");
	free(good.bytes);
}

TEST(limits_hold)
{
	struct file good = make_jpeg(BASELINE, 200, 100), many = make_jpeg(MANY_SCANS, 24, 24);
	struct file progressive = make_jpeg(PROGRESSIVE, 600, 400);
	struct decode_options pixels = {.max_pixels = 19999}, exact = {.max_pixels = 20000};
	struct decode_options side = {.max_side = 199}, scans = {.max_scans = MANY};
	struct decode_options fewer = {.max_scans = MANY - 1}, memory = {.max_memory_bytes = 200000};
	size_t sof = find_segment(good, 0xc0);

	STORY("a bomb of 100 KB");
	expect_bad(patched(good, sof + 5, "\xff\xdc\xff\xdc", 4), NULL, SHARD_MISS_LIMIT,
		   "is 65500 x 65500 = 4290250000 pixels: more than the limit of 89478485; --limit pixels=4290250000 "
		   "takes it");
	STORY("beyond what the library reads");
	expect_bad(patched(good, sof + 5, "\xff\xff\xff\xff", 4), NULL, SHARD_MISS_LIMIT, "65500");
	STORY("pixels");
	expect_bad(file_copy(good.bytes, good.size), &pixels, SHARD_MISS_LIMIT,
		   "= 20000 pixels: more than the limit of 19999; --limit pixels=20000 takes it");
	CHECK_EQ(decode_fresh(good, &exact).status, DECODE_OK);
	STORY("side");
	expect_bad(file_copy(good.bytes, good.size), &side, SHARD_MISS_LIMIT,
		   "longer than the limit of 199; --limit side=200 takes it");
	STORY("scans");
	expect_bad(file_copy(many.bytes, many.size), NULL, SHARD_MISS_LIMIT,
		   "progressive JPEG has more than 100 scans; --limit scans=N allows more");
	expect_bad(file_copy(many.bytes, many.size), &fewer, SHARD_MISS_LIMIT,
		   "more than 189 scans; --limit scans=N allows more");
	CHECK_EQ(decode_fresh(many, &scans).status, DECODE_OK);
	STORY("memory");
	expect_bad(file_copy(progressive.bytes, progressive.size), &memory, SHARD_MISS_LIMIT,
		   "600 x 400 JPEG needs more than 200000 bytes of decoder memory; --limit memory=N allows more");
	free(good.bytes);
	free(many.bytes);
	free(progressive.bytes);
}

/* Tables must not survive from one image to the next: whose pixels would they be? */
/* ---- what a container of AVIF names ---- */

#define ITEM_BYTES 22u

/* A box with `in` in it, and as a full box a version and flags of 0. */
static struct file box_of(const char *type, bool full, struct file in)
{
	size_t head = full ? 12 : 8, size = head + in.size;
	struct file out = {calloc(1, size), size};

	CHECK(out.bytes);
	out.bytes[2] = (uint8_t)(size >> 8);
	out.bytes[3] = (uint8_t)size;
	memcpy(out.bytes + 4, type, 4);
	memcpy(out.bytes + head, in.bytes, in.size);
	free(in.bytes);
	return out;
}

/* Items in two pieces of `length` bytes each. */
static struct file iloc_of(unsigned items, unsigned length)
{
	struct file in = {calloc(1, 4 + (size_t)items * ITEM_BYTES), 4 + (size_t)items * ITEM_BYTES};

	CHECK(in.bytes);
	memcpy(in.bytes, (uint8_t[]){0x44, 0, 0, (uint8_t)items}, 4);
	for (unsigned i = 0; i < items; i++) {
		uint8_t *at = in.bytes + 4 + (size_t)i * ITEM_BYTES;

		at[1] = (uint8_t)(i + 1);
		at[5] = 2;
		at[12] = at[20] = (uint8_t)(length >> 8);
		at[13] = at[21] = (uint8_t)length;
	}
	return box_of("iloc", true, in);
}

TEST(items_that_share_bytes_are_added_up)
{
	struct file inside = box_of("moov", false, box_of("trak", false, box_of("meta", true, iloc_of(20, 100))));
	struct file f = box_of("meta", true, iloc_of(20, 100));

	CHECK(heif_items_fit(f.bytes, f.size, 20 * 2 * 100));
	CHECK(!heif_items_fit(f.bytes, f.size, 20 * 2 * 100 - 1));
	for (size_t cut = 0; cut < f.size; cut++) /* a box that is not whole is none */
		CHECK(heif_items_fit(f.bytes, cut, 0));
	CHECK(!heif_items_fit(inside.bytes, inside.size, 20 * 2 * 100 - 1));
	f.bytes[24] = 0; /* no bytes for offsets and lengths: each piece is the whole file */
	CHECK(!heif_items_fit(f.bytes, f.size, 4 * f.size));
	free(f.bytes);
	free(inside.bytes);
}

TEST(nothing_is_left_of_the_image_before)
{
	struct file good = make_jpeg(BASELINE, 33, 17), other = make_jpeg(OPTIMIZED, 33, 17);
	struct file files[] = {
		without_segments(good, 0xdb, 2),
		without_segments(good, 0xc4, 4),
		without_segments(other, 0xc4, 4),
		without_segments(other, 0xdb, 1),
	};
	struct decoder *used = decoder_open(NULL);

	CHECK(used);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct decoded fresh = decode_fresh(files[i], NULL), r;

		CHECK_EQ(decode(used, i % 2 ? other : good).status, DECODE_OK);
		STORY("file %zu", i);
		r = decode(used, files[i]);
		check_same(&r, &fresh);
		free(files[i].bytes);
	}
	decoder_close(used);
	free(good.bytes);
	free(other.bytes);
}

/* Whatever a file holds: no crash, and the same answer from a decoder that has seen the others. */
TEST(random_damage_has_one_answer)
{
	struct decoder *used = decoder_open(NULL);
	int counts[SHARD_MISS_KEY] = {0};

	CHECK(used);
	for (uint64_t i = 0; i < 3000; i++) {
		struct file f = make_jpeg((enum kind)(i % MANY_SCANS), 17 + (uint32_t)(i % 40), 24);
		struct decoded r, fresh;

		for (uint64_t n = 0; n <= i % 4; n++) {
			uint64_t at = prng_at(i, n) % f.size;

			f.bytes[at < 3 ? at + 3 : at] ^= (uint8_t)(1 << n | (i % 5 ? 0 : prng_at(i, n + 9)));
		}
		r = decode(used, f);
		fresh = decode_fresh(f, NULL);
		STORY("seed %" PRIu64, i);
		check_same(&r, &fresh);
		counts[r.verdict.reason]++;
		free(f.bytes);
	}
	decoder_close(used);
	/* All ways out were taken, or this test saw less than it thinks. */
	CHECK(counts[0] > 100 && counts[SHARD_MISS_DECODE] > 100 && counts[SHARD_MISS_DAMAGED] > 100);
	CHECK(counts[SHARD_MISS_TRUNCATED] && counts[SHARD_MISS_UNSUPPORTED]);
}

TEST_MAIN()
