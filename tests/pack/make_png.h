/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_png.h - PNG files of every kind, with values that a test can foretell
 */
#ifndef TESTS_PACK_MAKE_PNG_H
#define TESTS_PACK_MAKE_PNG_H

#include <png.h>
#include <zlib.h>

#include "tests/pack/decoded.h"

struct png_kind {
	int colour, bits;
	const char *name;
};

static inline void png_on_write(png_structp png, png_bytep bytes, size_t size)
{
	struct file *f = png_get_io_ptr(png);

	f->bytes = realloc(f->bytes, f->size + size);
	CHECK(f->bytes);
	memcpy(f->bytes + f->size, bytes, size);
	f->size += size;
}

static inline void png_on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static inline int channels_of(int colour)
{
	return colour == PNG_COLOR_TYPE_RGB	     ? 3
	       : colour == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
	       : colour == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
						     : 1;
}

/* Entry i of every palette. */
static inline png_color palette_at(int i)
{
	return (png_color){(png_byte)(i * 7 + 1), (png_byte)(255 - i), (png_byte)(i * 31)};
}

/* The value, of `bits` bits, of channel c of pixel i. */
static inline unsigned value_at(int bits, uint64_t i, int c)
{
	return (unsigned)(prng_at((uint64_t)c, i) & ((1u << bits) - 1));
}

/*
 * Values are below 2^value_bits.  With colour_count below 2^bits, a palette lacks its last entries.
 */
static inline struct file make_png_below(struct png_kind k, int value_bits, uint32_t width, uint32_t height,
					 bool interlaced, int colour_count)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, png_on_warning);
	png_infop info = png_create_info_struct(png);
	int passes, channels = channels_of(k.colour);
	uint8_t row[8 * 512], alphas[2] = {0, 128};
	struct file f = {NULL, 0};
	png_color palette[256];

	png_set_write_fn(png, &f, png_on_write, NULL);
	png_set_IHDR(png, info, width, height, k.bits, k.colour, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	if (k.colour == PNG_COLOR_TYPE_PALETTE) {
		for (int i = 0; i < colour_count; i++)
			palette[i] = palette_at(i);
		png_set_PLTE(png, info, palette, colour_count);
		png_set_tRNS(png, info, alphas, 2, NULL); /* transparency must change nothing */
	}
	png_set_gAMA(png, info, 1.0); /* nor may gamma */
	png_set_check_for_invalid_index(png, 0);
	png_write_info(png, info);
	passes = png_set_interlace_handling(png);
	if (k.bits < 8)
		png_set_packing(png);
	for (int pass = 0; pass < passes; pass++)
		for (uint32_t y = 0; y < height; y++) {
			for (uint32_t i = 0; i < width * (uint32_t)channels; i++) {
				unsigned v = value_at(value_bits, y * width + i / (uint32_t)channels,
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

static inline struct file make_png(struct png_kind k, uint32_t width, uint32_t height, bool interlaced,
				   int colour_count)
{
	return make_png_below(k, k.bits, width, height, interlaced, colour_count);
}

static inline void put_be32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* `f` with one more chunk in front of the first one called `before`; frees `f`. */
static inline struct file with_chunk(struct file f, const char *before, const char *name, const char *data)
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

#endif
