/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_png.c - PNG to RGB, or to the values of a mask, through libpng
 *
 * Metadata chunks are skipped unread: no gamma, no profile, no background.  Samples of 16
 * bits keep their high byte and alpha is dropped, as in Pillow.  Gray of 16 bits is refused:
 * Pillow clips it at 255, which turns the picture white; no user wants either answer.  Where 16
 * bits are asked for, all of them are kept.
 * Palette indices are looked up here, not in libpng, which does not check them in time.
 *
 * Errors arrive by a callback that must not return, so it jumps.  Everything that lives
 * across the jump is in struct png, none of it in locals.
 */
#include "tools/shardpack/images/images.h"

#include <arpa/inet.h> /* htons */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>
#include <zlib.h>

#include "shard_inspect.h"

#define PROFILE_BYTES 4096 /* profiles of RGB have fewer, or their primaries are among the first */

struct png {
	png_structp png;
	png_infop info;
	jmp_buf failed;
	struct decoder *d;
	struct decode_verdict *v;
	enum decode_status status; /* what the jump means */
	bool no_memory;		   /* an allocation failed: the error that follows says nothing */
	const uint8_t *bytes;	   /* not read yet */
	size_t left_bytes;
	png_colorp palette; /* NULL unless pixels are indices into it */
	int palette_count;
	int bad_index;			  /* the first one beyond the palette's end; -1: none */
	bool narrow;			  /* rows have one sample per pixel and are spread to three */
	bool wide;			  /* rows of a mask have 16 bits and are to become 8 */
	uint32_t bad_value, bad_x, bad_y; /* the first one above 255; 0: none */
	struct mask_pixels coded;	  /* of a mask of codes */
};

static _Noreturn void give_up(struct png *p, enum decode_status status)
{
	p->status = status;
	longjmp(p->failed, 1);
}

static void on_error(png_structp png, png_const_charp text)
{
	struct png *p = png_get_error_ptr(png);

	if (p->no_memory)
		give_up(p, decode_no_memory(p->v));
	give_up(p, decode_bad(p->v, SHARD_MISS_DECODE, "PNG cannot be decoded: %s", text));
}

static void on_warning(png_structp png, png_const_charp text)
{
	(void)png; /* about metadata only: what touches pixels is an error, see open_stream */
	(void)text;
}

static png_voidp on_malloc(png_structp png, png_alloc_size_t size)
{
	struct png *p = png_get_mem_ptr(png);
	void *memory = malloc(size);

	if (!memory)
		p->no_memory = true;
	return memory;
}

static void on_read(png_structp png, png_bytep dst, size_t size)
{
	struct png *p = png_get_io_ptr(png);

	if (size > p->left_bytes)
		give_up(p, decode_bad(p->v, SHARD_MISS_TRUNCATED, "PNG data ends early: at least %zu bytes are missing",
				      size - p->left_bytes));
	memcpy(dst, p->bytes, size);
	p->bytes += size;
	p->left_bytes -= size;
}

static void open_stream(struct png *p)
{
	p->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, p, on_error, on_warning, p, on_malloc, NULL);
	if (!p->png)
		give_up(p, decode_no_memory(p->v));
	p->info = png_create_info_struct(p->png);
	if (!p->info)
		give_up(p, decode_no_memory(p->v));
	png_set_read_fn(p->png, p, on_read);
	png_set_user_limits(p->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* ours is the message */
	png_set_chunk_malloc_max(p->png, 0); /* it also refuses what is skipped; nothing that is kept is large */
	/*
	 * Leave metadata unread, tRNS with it; then every error is about pixels, so let it be one.
	 */
	png_set_keep_unknown_chunks(p->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
	png_set_keep_unknown_chunks(p->png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "tRNS", 1);
	png_set_benign_errors(p->png, 0);
}

/* After this, rows have one 8-bit sample per pixel (gray or index) or three; or 16-bit ones. */
static void choose_transforms(struct png *p)
{
	int type = png_get_color_type(p->png, p->info);
	int bits = png_get_bit_depth(p->png, p->info);
	char has[40];

	if (p->d->wide && bits != 16) {
		snprintf(has, sizeof(has), type == PNG_COLOR_TYPE_PALETTE ? "a palette of 8 bits" : "%d bit%s a sample",
			 bits, bits == 1 ? "" : "s");
		give_up(p, decode_not_wide(p->v, "PNG", has));
	}
	if (!p->d->wide && type == PNG_COLOR_TYPE_GRAY && bits == 16)
		give_up(p, decode_bad(p->v, SHARD_MISS_UNSUPPORTED,
				      "PNG is gray with 16 bits: --dtype u16 packs them all; or convert it to 8 bits"));
	if (p->d->wide && htons(1) != 1)
		png_set_swap(p->png);
	if (type == PNG_COLOR_TYPE_PALETTE) {
		png_set_packing(p->png);
		png_get_PLTE(p->png, p->info, &p->palette, &p->palette_count);
	} else if (bits < 8) {
		png_set_expand_gray_1_2_4_to_8(p->png);
	} else if (bits == 16 && !p->d->wide) {
		png_set_strip_16(p->png);
		decode_drop(p->v, DROPPED_BITS);
	}
	if (type & PNG_COLOR_MASK_ALPHA) {
		decode_drop(p->v, DROPPED_ALPHA);
		png_set_strip_alpha(p->png);
	}
}

/*
 * How many pictures the file has; 0 if it has no chunk that says so where that may be, in front of
 * the pixels.  The first picture is one more if it is not a frame of the animation.
 */
static uint64_t count_frames(const struct png *p)
{
	size_t at = PNG_MAGIC_BYTES;
	struct png_chunk chunk;
	uint64_t count = 0;
	bool is_frame = false;

	while (png_chunk_next(p->bytes, p->left_bytes, &at, &chunk) && !png_chunk_is(&chunk, "IDAT")) {
		is_frame = is_frame || png_chunk_is(&chunk, "fcTL");
		if (png_chunk_is(&chunk, "acTL") && chunk.bytes >= 4)
			count = load32_big(chunk.data);
	}
	return count + (count && !is_frame);
}

#define GAMMA_OF_SRGB 45455 /* 1/2.2, in 1/100000 */
#define GAMMA_NEAR    1000

/* A profile is compressed: inflate as much as has its primaries. */
static bool has_other_profile(const struct png_chunk *chunk)
{
	const uint8_t *nul = memchr(chunk->data, 0, chunk->bytes);
	size_t head = nul ? (size_t)(nul - chunk->data) + 2 : chunk->bytes; /* behind the method */
	uint8_t profile[PROFILE_BYTES];
	z_stream z = {.next_in = (Bytef *)(uintptr_t)(chunk->data + head)};
	bool other = true;

	if (head >= chunk->bytes || inflateInit(&z) != Z_OK)
		return true;
	z.avail_in = (uInt)(chunk->bytes - head);
	z.next_out = profile;
	z.avail_out = sizeof(profile);
	inflate(&z, Z_SYNC_FLUSH);
	other = !icc_is_like_srgb(profile, sizeof(profile) - z.avail_out);
	inflateEnd(&z);
	return other;
}

/*
 * What the chunks in front of the pixels say of them, and Pillow ignores: a transparent colour, and
 * what the colours mean.  sRGB or a profile overrules gamma and primaries.
 */
static void note_chunks(const struct png *p)
{
	/* white, red, green, blue: x and y of each in 1/100000 */
	static const uint32_t srgb[8] = {31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000};
	size_t at = PNG_MAGIC_BYTES;
	struct png_chunk chunk;
	bool other = false, known = false;

	while (png_chunk_next(p->bytes, p->left_bytes, &at, &chunk) && !png_chunk_is(&chunk, "IDAT")) {
		if (png_chunk_is(&chunk, "tRNS"))
			decode_drop(p->v, DROPPED_ALPHA);
		if (png_chunk_is(&chunk, "sRGB"))
			known = true;
		if (png_chunk_is(&chunk, "cICP") && chunk.bytes >= 2) { /* 1 and 13 are those of sRGB */
			known = true;
			if (chunk.data[0] != 1 || chunk.data[1] != 13)
				decode_drop(p->v, DROPPED_PROFILE);
		}
		if (png_chunk_is(&chunk, "iCCP")) {
			known = true;
			if (has_other_profile(&chunk))
				decode_drop(p->v, DROPPED_PROFILE);
		}
		if (png_chunk_is(&chunk, "gAMA") && chunk.bytes == 4)
			other = other || load32_big(chunk.data) + GAMMA_NEAR - GAMMA_OF_SRGB > 2 * GAMMA_NEAR;
		for (int i = 0; png_chunk_is(&chunk, "cHRM") && chunk.bytes == 32 && i < 8; i++)
			other = other || load32_big(chunk.data + 4 * i) + GAMMA_NEAR - srgb[i] > 2 * GAMMA_NEAR;
	}
	if (other && !known)
		decode_drop(p->v, DROPPED_PROFILE);
}

/* The same for a mask: one value per pixel, of 8 bits or 16; for one of codes the file's own channels. */
static void choose_values(struct png *p)
{
	int type = png_get_color_type(p->png, p->info), bits = png_get_bit_depth(p->png, p->info), count = 0;
	enum decode_status rc;

	if (!p->d->codes && type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_PALETTE)
		give_up(p, decode_bad_channels(p->v, "PNG", png_get_channels(p->png, p->info)));
	if (type == PNG_COLOR_TYPE_PALETTE)
		png_set_check_for_invalid_index(p->png, 0);
	if (type == PNG_COLOR_TYPE_PALETTE || bits == 1)
		png_set_packing(p->png);
	else if (bits < 8)
		png_set_expand_gray_1_2_4_to_8(p->png);
	if (!p->d->codes) {
		p->wide = bits == 16;
		p->d->pixel_bytes = p->wide ? 2 : 1;
		return;
	}
	p->coded = (struct mask_pixels){
		.format = "PNG", .channels = png_get_channels(p->png, p->info), .wide = bits == 16};
	if (type == PNG_COLOR_TYPE_PALETTE && png_get_PLTE(p->png, p->info, &p->palette, &count))
		p->coded.palette = &p->palette->red; /* three bytes each, in this order */
	p->coded.palette_count = (uint32_t)count;
	rc = mask_codes_check(p->d->codes, &p->coded, p->v);
	if (rc)
		give_up(p, rc);
}

static void spread_palette(struct png *p, uint8_t *row, uint32_t width)
{
	const uint8_t *idx = decode_narrow_row(row, width);

	for (uint32_t i = 0; i < width; i++, row += IMAGE_CHANNELS) {
		png_color colour = {0, 0, 0};

		if (idx[i] < p->palette_count)
			colour = p->palette[idx[i]];
		else if (p->bad_index < 0)
			p->bad_index = idx[i];
		row[0] = colour.red;
		row[1] = colour.green;
		row[2] = colour.blue;
	}
}

/* Where libpng puts a row: at the end of its place if it is to be spread from there. */
static uint8_t *row_target(const struct png *p, uint8_t *row, uint32_t width)
{
	if (p->coded.format)
		return row + (MASK_PIXEL_BYTES - mask_pixel_bytes(&p->coded)) * (size_t)width;
	return p->narrow ? decode_narrow_row(row, p->d->wide ? 2 * width : width) : row;
}

/* Row y as libpng gave it, to what it is to be, at `to`: where it lies unless it is wide. */
static void finish_row(struct png *p, uint8_t *row, uint32_t width, uint32_t y, uint8_t *to)
{
	uint32_t value, x;
	enum decode_status rc;

	if (p->coded.format) {
		rc = mask_codes_row(p->d->codes, &p->coded, row_target(p, row, width), width, y, to, p->v);
		if (rc)
			give_up(p, rc);
	} else if (p->wide) {
		value = decode_16_to_8(row, width, to, &x);
		if (value && !p->bad_value) {
			p->bad_value = value;
			p->bad_x = x;
			p->bad_y = y;
		}
	} else if (p->palette) {
		spread_palette(p, row, width);
	} else if (p->narrow && p->d->wide) {
		decode_spread_wide(row, width);
	} else if (p->narrow) {
		decode_spread_gray(row, width);
	}
}

static void read_rows(struct png *p, int passes)
{
	uint32_t width = p->d->width, height = p->d->height;
	size_t given_bytes = decode_given_bytes(p->d);

	for (int pass = 0; pass < passes; pass++)
		for (uint32_t y = 0; y < height; y++) {
			uint8_t *row = decode_row(p->d, y);

			png_read_row(p->png, row_target(p, row, width), NULL);
		}
	for (uint32_t y = 0; y < height; y++)
		finish_row(p, decode_row(p->d, y), width, y, p->d->pixels.data + y * given_bytes * width);
	p->d->pixel_bytes = p->d->wide ? IMAGE_WIDE_BYTES : p->d->channels;
}

static void stream_rows(struct png *p, uint32_t width, uint32_t height)
{
	const struct image_sink *sink = p->d->sink;
	struct image_size size = {.width = width, .height = height, .scale = 1};
	size_t stride_bytes = p->d->pixel_bytes * (size_t)width;
	uint8_t *strip = p->d->pixels.data;
	struct image_window part;
	uint32_t count = 0;

	p->d->sink_begun = true;
	if (!sink->begin(sink->context, &size, &part))
		give_up(p, decode_no_memory(p->v));
	for (uint32_t y = 0; y < height; y++) {
		bool wanted = y >= part.y && y - part.y < part.height;
		uint8_t *row = strip + count * stride_bytes;

		png_read_row(p->png, row_target(p, row, width), NULL);
		finish_row(p, row, width, y, row); /* what is not wanted too: an index may be bad */
		count += wanted;
		if (count && (count == RESIZE_ROWS_AT_ONCE || y + 1 == part.y + part.height)) {
			sink->rows(sink->context, strip + decode_given_bytes(p->d) * (size_t)part.x, stride_bytes,
				   count);
			count = 0;
		}
	}
}

/* A jump returns here, and reads no variable of this frame: it could be stale. */
static void read_image(struct png *p)
{
	bool mask = p->d->channels == 1, interlaced;
	enum decode_status rc;
	uint32_t width, height;
	uint64_t frames;
	int passes;

	if (setjmp(p->failed))
		return;
	frames = count_frames(p);
	if (mask && frames)
		give_up(p, decode_bad(p->v, SHARD_MISS_UNSUPPORTED,
				      "PNG is animated: save the frame that is wanted as an image"));
	rc = decode_first_of(p->d, frames, "PNG", "frames", p->v);
	if (rc)
		give_up(p, rc);
	if (!mask)
		note_chunks(p);
	open_stream(p);
	png_read_info(p->png, p->info);
	width = png_get_image_width(p->png, p->info);
	height = png_get_image_height(p->png, p->info);
	if (mask)
		choose_values(p);
	interlaced = png_get_interlace_type(p->png, p->info) != PNG_INTERLACE_NONE;
	if (interlaced) { /* such an image is only complete at its end */
		rc = decode_begin(p->d, width, height, p->v);
	} else {
		rc = decode_check_size(p->d, width, height, p->v);
		if (!rc && !scratch_reserve(&p->d->pixels, RESIZE_ROWS_AT_ONCE * p->d->pixel_bytes * (size_t)width))
			rc = decode_no_memory(p->v);
	}
	if (rc)
		give_up(p, rc);
	if (!mask)
		choose_transforms(p);
	passes = png_set_interlace_handling(p->png);
	png_read_update_info(p->png, p->info);
	p->narrow = !mask && png_get_channels(p->png, p->info) == 1;
	if (interlaced)
		read_rows(p, passes);
	else
		stream_rows(p, width, height);
	/* all rows were read: a file that also ends early is called shortened */
	if (p->bad_value)
		give_up(p, decode_bad_value(p->v, "PNG", p->bad_value, p->bad_x, p->bad_y));
	if (p->bad_index >= 0)
		give_up(p, decode_bad(p->v, SHARD_MISS_DAMAGED,
				      "PNG data is damaged: palette index %d, but the palette ends at %d", p->bad_index,
				      p->palette_count - 1));
	png_read_end(p->png, p->info); /* checks what follows: more pixels, broken chunks, no end */
}

enum decode_status png_run(struct decoder *d, const uint8_t *bytes, size_t size, struct decode_verdict *v)
{
	struct png p = {.d = d, .v = v, .bytes = bytes, .left_bytes = size, .bad_index = -1};

	read_image(&p);
	png_destroy_read_struct(&p.png, &p.info, NULL);
	return p.status;
}

const char *decoder_png_version(void)
{
	return "libpng " PNG_LIBPNG_VER_STRING;
}
