/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_decode_mask.c - masks: every kind of file gives the values that were put in, and what is no
 * mask says why
 *
 * That the values are Pillow's is twin/masks.sh's to say.
 */
#include "shard_inspect.h"
#include "tests/pack/kept.h"
#include "tests/pack/make_png.h"

static const struct png_kind kinds[] = {
	{PNG_COLOR_TYPE_GRAY, 1, "gray 1"},	  {PNG_COLOR_TYPE_GRAY, 2, "gray 2"},
	{PNG_COLOR_TYPE_GRAY, 4, "gray 4"},	  {PNG_COLOR_TYPE_GRAY, 8, "gray 8"},
	{PNG_COLOR_TYPE_GRAY, 16, "gray 16"},	  {PNG_COLOR_TYPE_PALETTE, 1, "palette 1"},
	{PNG_COLOR_TYPE_PALETTE, 2, "palette 2"}, {PNG_COLOR_TYPE_PALETTE, 4, "palette 4"},
	{PNG_COLOR_TYPE_PALETTE, 8, "palette 8"},
};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))
#define GRAY_8	   kinds[3]
#define GRAY_16	   kinds[4]
#define PALETTE_2  kinds[6]

/* A mask of 16 bits is one only if its values fit 8. */
static struct file make_mask(struct png_kind k, uint32_t width, uint32_t height, bool interlaced)
{
	return make_png_below(k, k.bits == 16 ? 8 : k.bits, width, height, interlaced, 1 << (k.bits & 15));
}

/*
 * What a decoder must make of it: gray of 2 and 4 bits reaches from 0 to 255, that of 1 bit does
 * not.
 */
static uint8_t value_of(struct png_kind k, uint64_t i)
{
	unsigned v = value_at(k.bits == 16 ? 8 : k.bits, i, 0);

	return (uint8_t)(k.colour == PNG_COLOR_TYPE_GRAY && k.bits == 2 ? v * 85
			 : k.bits == 4 && !k.colour			? v * 17
									: v);
}

struct mask_run {
	enum decode_status status;
	struct decode_verdict verdict;
	struct kept kept;
};

static struct mask_run run_mask(struct decoder *d, struct file f, struct image_window want)
{
	struct mask_run r = {.kept = {.want = want, .channels = 1}};
	const struct image_sink sink = kept_sink(&r.kept);

	r.status = decoder_stream(d, DECODE_MASK, NULL, f.bytes, f.size, &sink, &r.verdict);
	return r;
}

static struct decoder *fresh(void)
{
	struct decoder *d = decoder_open(NULL);

	CHECK(d);
	return d;
}

/* Frees `f`. */
static void expect_bad(struct decoder *d, struct file f, int reason, const char *sentence)
{
	struct mask_run r = run_mask(d, f, KEPT_WHOLE);

	free(f.bytes);
	free(r.kept.pixels);
	CHECK_STR(r.verdict.message, sentence);
	CHECK_EQ(r.verdict.reason, reason);
	CHECK_EQ(r.status, DECODE_BAD_INPUT);
}

static struct file text_file(const char *bytes, size_t size)
{
	return file_copy((const uint8_t *)bytes, size);
}

#define FILE_OF(s) text_file(s, sizeof(s) - 1)

/* Whole, and a part: what is not wanted is passed over. */
TEST(every_kind_gives_its_values)
{
	static const uint32_t sizes[][2] = {{1, 1}, {7, 5}, {33, 17}, {2, 300}, {500, 2}};
	struct decoder *d = fresh();

	for (size_t i = 0; i < KIND_COUNT * 20; i++) {
		struct png_kind k = kinds[i % KIND_COUNT];
		const uint32_t *size = sizes[i / KIND_COUNT % 5];
		bool interlaced = i / KIND_COUNT / 5 % 2, part = i / KIND_COUNT >= 10;
		struct file f = make_mask(k, size[0], size[1], interlaced);
		struct mask_run r = run_mask(d, f, part ? (struct image_window){2, 1, 30, 9} : KEPT_WHOLE);
		const struct image_window *w = &r.kept.want;

		STORY("%s, %ux%u, interlaced %d, part %d", k.name, size[0], size[1], interlaced, part);
		CHECK_STR(r.verdict.message, "");
		CHECK_EQ(r.status, DECODE_OK);
		CHECK_EQ(r.kept.width, size[0]);
		CHECK_EQ(r.kept.height, size[1]);
		CHECK_EQ(r.kept.row_count, w->height);
		for (uint32_t y = 0; y < w->height; y++)
			for (uint32_t x = 0; x < w->width; x++)
				CHECK_EQ(r.kept.pixels[y * w->width + x],
					 value_of(k, (uint64_t)(w->y + y) * size[0] + w->x + x));
		free(r.kept.pixels);
		free(f.bytes);
	}
	decoder_close(d);
}

/*
 * Rows of 4 bytes from below; values 1 2 3 above 5 6 7; the palette of one entry is too short for
 * all of them.
 */
TEST(bmp_and_pgm_give_their_values)
{
	static const struct {
		struct file file;
		const char *name;
	} rows[] = {
#define BMP(bits, row1, row0)                                             \
	"BM\0\0\0\0\0\0\0\0\x3a\0\0\0\x28\0\0\0\3\0\0\0\2\0\0\0\1\0" bits \
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"                \
	"abc\0" row1 row0
#define ROW(s) {(uint8_t *)(uintptr_t)(s), sizeof(s) - 1}
		{ROW(BMP("\10\0", "\5\6\7\0", "\1\2\3\0")), "BMP 8"},
		{ROW(BMP("\4\0", "\x56\x70\0\0", "\x12\x30\0\0")), "BMP 4"},
		{ROW("P5 3 2 255\n\1\2\3\5\6\7"), "PGM"},
		{ROW("P5\n#\n3 2 65535\n\0\1\0\2\0\3\0\5\0\6\0\7"), "PGM of 16 bits"},
	};
	struct decoder *d = fresh();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct file f = file_copy(rows[i].file.bytes, rows[i].file.size);
		struct mask_run r = run_mask(d, f, KEPT_WHOLE);

		STORY("%s", rows[i].name);
		CHECK_STR(r.verdict.message, "");
		CHECK_EQ(r.kept.width, 3);
		CHECK_EQ(r.kept.height, 2);
		CHECK_MEM(r.kept.pixels, "\1\2\3\5\6\7", 6);
		free(r.kept.pixels);
		for (f.size--; f.size; f.size--) {
			struct file cut = file_copy(f.bytes, f.size);

			r = run_mask(d, cut, KEPT_WHOLE);
			STORY("%s, cut to %zu bytes", rows[i].name, f.size);
			CHECK_EQ(r.status, DECODE_BAD_INPUT);
			free(r.kept.pixels);
			free(cut.bytes);
		}
		free(f.bytes);
	}
	decoder_close(d);
}

/*
 * An image is refused for it, so the file is what it should be.  Two too many: libpng lets the
 * first one pass.
 */
TEST(an_index_beyond_the_palette_is_a_value)
{
	struct decoder *d = fresh();

	for (int interlaced = 0; interlaced < 2; interlaced++) {
		struct file f = make_png(PALETTE_2, 20, 20, interlaced, 2);
		struct decoded image = decode(d, f);
		struct mask_run r = run_mask(d, f, KEPT_WHOLE);

		check_bad(&image, SHARD_MISS_DAMAGED, ", but the palette ends at 1");
		CHECK_STR(r.verdict.message, "");
		for (uint64_t i = 0; i < 400; i++)
			CHECK_EQ(r.kept.pixels[i], value_of(PALETTE_2, i));
		free(r.kept.pixels);
		free(f.bytes);
	}
	decoder_close(d);
}

TEST(a_value_above_255_is_named)
{
	struct decoder *d = fresh();

	for (int interlaced = 0; interlaced < 2; interlaced++) {
		uint64_t i = 0;
		char sentence[128];

		while (value_at(9, i, 0) < 256)
			i++;
		snprintf(sentence, sizeof(sentence),
			 "PNG has the value %u at column %u of row %u: a mask of u8 holds 0 to 255; dtype=u16 takes it",
			 value_at(9, i, 0), (unsigned)(i % 3), (unsigned)(i / 3));
		STORY("interlaced %d", interlaced);
		expect_bad(d, make_png_below(GRAY_16, 9, 3, 50, interlaced, 0), SHARD_MISS_UNSUPPORTED, sentence);
	}
	expect_bad(d, FILE_OF("P5 2 2 65535\n\0\1\0\2\0\3\1\0"), SHARD_MISS_UNSUPPORTED,
		   "PGM has the value 256 at column 1 of row 1: a mask of u8 holds 0 to 255; dtype=u16 takes it");
	decoder_close(d);
}

#define OR_CODES "; or give map=FILE, or dtype=u32 for ids R + 256 G + 65536 B"

TEST(what_is_no_mask_says_why)
{
	static const struct {
		struct png_kind kind;
		const char *sentence;
	} colours[] = {
		{{PNG_COLOR_TYPE_GRAY_ALPHA, 8, ""},
		 "PNG has 2 channels: a mask has one, save it as gray or with a palette" OR_CODES},
		{{PNG_COLOR_TYPE_RGB, 8, ""},
		 "PNG has 3 channels: a mask has one, save it as gray or with a palette" OR_CODES},
		{{PNG_COLOR_TYPE_RGB, 16, ""},
		 "PNG has 3 channels: a mask has one, save it as gray or with a palette" OR_CODES},
		{{PNG_COLOR_TYPE_RGB_ALPHA, 8, ""},
		 "PNG has 4 channels: a mask has one, save it as gray or with a palette" OR_CODES},
	};
	static const struct {
		struct file file;
		int reason;
		const char *sentence;
	} rows[] = {
		{ROW("\xff\xd8\xff"), SHARD_MISS_UNSUPPORTED,
		 "JPEG is lossy and keeps no values: save the mask as PNG"},
		{ROW("RIFF\4\0\0\0WEBP"), SHARD_MISS_UNSUPPORTED,
		 "WebP has colours and no values: save the mask as PNG"},
		{ROW("GIF89a"), SHARD_MISS_UNSUPPORTED,
		 "starts with 47 49 46 38 (GIF8): a mask is not read from a GIF, convert it to PNG"},
		{ROW("II*\0"), SHARD_MISS_UNSUPPORTED,
		 "starts with 49 49 (II): a mask is not read from a TIFF, convert it to PNG"},
		{ROW("\0\0\0\x14"
		     "ftypmif1\0\0\0\0avif"),
		 SHARD_MISS_UNSUPPORTED,
		 "starts with 00 00 00 14 66 74 79 70 (ftyp): a mask is not read from an AVIF, convert it to PNG"},
		{ROW("\xff\x0a"), SHARD_MISS_UNSUPPORTED,
		 "starts with ff 0a: JPEG XL is not supported, convert it to PNG"},
		{ROW("P6 1 1 255\nabc"), SHARD_MISS_UNSUPPORTED,
		 "PPM has 3 channels: a mask has one, save it as gray or with a palette" OR_CODES},
		{ROW("P5 1 1 1000\n\0\1"), SHARD_MISS_UNSUPPORTED, "PGM has samples up to 1000: convert it to 8 bits"},
		{ROW("P5 2 1 65535\n\0\1\0"), SHARD_MISS_TRUNCATED, "PGM data ends early: has 3 bytes of 4"},
		{ROW("BM\0\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0\1\0\1\0\1\0\x18\0abc\0"), SHARD_MISS_UNSUPPORTED,
		 "BMP has 3 channels: a mask has one, save it as gray or with a palette" OR_CODES},
		{ROW("0 1 2"), SHARD_MISS_NOT_AN_IMAGE, "starts with 30 20 31 20 32: not a mask (PNG, BMP, PGM)"},
		{ROW(""), SHARD_MISS_EMPTY, "is empty (0 bytes)"},
	};
	struct decoder *d = fresh();

	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
		expect_bad(d, make_png(colours[i].kind, 5, 5, false, 0), SHARD_MISS_UNSUPPORTED, colours[i].sentence);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_bad(d, file_copy(rows[i].file.bytes, rows[i].file.size), rows[i].reason, rows[i].sentence);
	decoder_close(d);
}

/*
 * Behind the pixels the chunk means nothing.  As an image the first frame is taken, as by Pillow.
 */
TEST(an_animation_is_no_mask)
{
	struct decoder *d = fresh();
	struct file f = with_chunk(make_mask(GRAY_8, 5, 5, false), "IDAT", "acTL", "12345678"),
		    g = with_chunk(make_mask(GRAY_8, 5, 5, false), "IEND", "acTL", "12345678");
	struct mask_run r = run_mask(d, g, KEPT_WHOLE);

	CHECK_EQ(decode(d, f).status, DECODE_OK);
	expect_bad(d, f, SHARD_MISS_UNSUPPORTED, "PNG is animated: save the frame that is wanted as an image");
	CHECK_EQ(r.status, DECODE_OK);
	free(r.kept.pixels);
	free(g.bytes);
	decoder_close(d);
}

static void expect_same_as_image(struct decoder *d, struct file f, unsigned *bad)
{
	struct decoded image = decode(d, f);
	struct mask_run r = run_mask(d, f, KEPT_WHOLE);

	CHECK_STR(r.verdict.message, image.verdict.message);
	CHECK_EQ(r.verdict.reason, image.verdict.reason);
	CHECK_EQ(r.status, image.status);
	*bad += r.status == DECODE_BAD_INPUT;
	free(r.kept.pixels);
}

/*
 * The verdict on a file that is cut or changed is that on the same file as an image: strict to its
 * end.
 */
TEST(damage_is_seen_as_in_an_image)
{
	struct decoder *d = fresh();
	unsigned bad = 0, cuts = 0;

	for (int interlaced = 0; interlaced < 2; interlaced++) {
		struct file f = make_mask(GRAY_8, 20, 20, interlaced);

		for (size_t size = 8; size < f.size; size++, cuts++) {
			struct file cut = file_copy(f.bytes, size);

			STORY("interlaced %d, %zu of %zu bytes", interlaced, size, f.size);
			expect_same_as_image(d, cut, &bad);
			free(cut.bytes);
		}
		CHECK_EQ(bad, cuts);
		for (size_t bit = 26 * 8; bit < f.size * 8; bit++) { /* behind the colour type */
			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			STORY("interlaced %d, bit %zu", interlaced, bit);
			expect_same_as_image(d, f, &bad);
			f.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		CHECK(bad > cuts + 1000);
		cuts = bad;
		free(f.bytes);
	}
	decoder_close(d);
}

static void add_claim(void *context, uint64_t bytes)
{
	*(uint64_t *)context += bytes;
}

/* One byte a pixel of what is held whole, two of 16 bits; nothing of what is streamed. */
TEST(memory_is_claimed)
{
	static const struct {
		struct png_kind kind;
		bool interlaced;
		uint64_t bytes;
	} rows[] = {{{PNG_COLOR_TYPE_GRAY, 8, ""}, true, 200 * 100},
		    {{PNG_COLOR_TYPE_PALETTE, 1, ""}, true, 200 * 100},
		    {{PNG_COLOR_TYPE_GRAY, 16, ""}, true, 2 * 200 * 100},
		    {{PNG_COLOR_TYPE_GRAY, 16, ""}, false, 0}};
	uint64_t claimed;
	struct decoder *d =
		decoder_open(&(struct decode_options){.max_side = 200, .claim = add_claim, .context = &claimed});

	CHECK(d);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct file f = make_mask(rows[i].kind, 200, 100, rows[i].interlaced);
		struct mask_run r;

		STORY("row %zu", i);
		claimed = 0;
		r = run_mask(d, f, KEPT_WHOLE);
		CHECK_EQ(r.status, DECODE_OK);
		CHECK_EQ(claimed, rows[i].bytes);
		free(r.kept.pixels);
		free(f.bytes);
	}
	expect_bad(d, FILE_OF("P5 201 1 255\n"), SHARD_MISS_LIMIT,
		   "is 201 x 1 pixels: a side is longer than the limit of 200; --limit side=201 takes it");
	decoder_close(d);
}

TEST_MAIN()
