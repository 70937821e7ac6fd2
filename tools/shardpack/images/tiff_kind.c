/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiff_kind.c - what the samples of a TIFF mean, and RGB made of them
 */
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "shard_pack.h"

/* All that the tags say about the samples. */
struct tags {
	uint16_t bits, samples, photometric, compression, planar, format, order;
	uint16_t extra_count, *extra;
};

static enum decode_status refuse(struct decode_verdict *v, const char *what)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED, "TIFF has %s: convert it to RGB of 8 bits", what);
}

static bool read_tags(TIFF *file, struct tags *t)
{
	*t = (struct tags){.bits = 1};
	TIFFGetFieldDefaulted(file, TIFFTAG_BITSPERSAMPLE, &t->bits);
	TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLESPERPIXEL, &t->samples);
	TIFFGetFieldDefaulted(file, TIFFTAG_COMPRESSION, &t->compression);
	TIFFGetFieldDefaulted(file, TIFFTAG_PLANARCONFIG, &t->planar);
	TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLEFORMAT, &t->format);
	TIFFGetFieldDefaulted(file, TIFFTAG_FILLORDER, &t->order);
	if (!TIFFGetField(file, TIFFTAG_EXTRASAMPLES, &t->extra_count, &t->extra))
		t->extra_count = 0;
	return TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &t->photometric);
}

static enum decode_status check_compression(const struct tags *t, struct decode_verdict *v)
{
	static const uint16_t known[] = {COMPRESSION_NONE,	COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3,
					 COMPRESSION_CCITTFAX4, COMPRESSION_LZW,      COMPRESSION_JPEG,
					 COMPRESSION_PACKBITS,	COMPRESSION_DEFLATE,  COMPRESSION_ADOBE_DEFLATE};
	size_t i = 0, count = sizeof(known) / sizeof(known[0]);

	while (i < count && known[i] != t->compression)
		i++;
	if (i == count || !TIFFIsCODECConfigured(t->compression))
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "TIFF has compression %u; none, LZW, deflate, PackBits, JPEG (7) and CCITT are read: "
				  "save it with one of these",
				  t->compression);
	return DECODE_OK;
}

/* Gray, from black or from white. */
static void fill_grays(struct tiff_kind *k, bool from_white)
{
	uint32_t most = (1u << k->bits) - 1;

	for (uint32_t i = 0; i <= most; i++)
		memset(k->table[i], (int)(255 / most * (from_white ? most - i : i)), 3);
}

static bool fill_palette(TIFF *file, struct tiff_kind *k)
{
	uint16_t *red, *green, *blue;

	if (!TIFFGetField(file, TIFFTAG_COLORMAP, &red, &green, &blue))
		return false;
	for (uint32_t i = 0; i < 1u << k->bits; i++) {
		k->table[i][0] = (uint8_t)(red[i] >> 8);
		k->table[i][1] = (uint8_t)(green[i] >> 8);
		k->table[i][2] = (uint8_t)(blue[i] >> 8);
	}
	return true;
}

/* One sample that means something, and at most one more that does not. */
static enum decode_status find_indices(TIFF *file, const struct tags *t, bool wide, struct tiff_kind *k,
				       struct decode_verdict *v)
{
	bool palette = t->photometric == PHOTOMETRIC_PALETTE;
	bool alpha = t->samples == 2 && t->bits == 8 && t->extra_count == 1 && t->photometric != PHOTOMETRIC_MINISWHITE;

	if (t->bits == 16 && !palette && !wide)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "TIFF is gray with 16 bits: --dtype u16 packs them all; or convert it to 8 bits");
	if (wide && t->photometric == PHOTOMETRIC_MINISWHITE)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "TIFF is gray with 16 bits in which 0 is white, and Pillow takes it for black: save "
				  "it with 0 as black");
	if (wide && !palette && t->samples == 1 && t->planar == PLANARCONFIG_CONTIG &&
	    t->compression != COMPRESSION_JPEG) {
		k->colours = TIFF_GRAY_16;
		return DECODE_OK;
	}
	if (wide)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "TIFF has gray and more channels with 16 bits: save it as gray or RGB of 16 bits");
	if (t->bits != 1 && t->bits != 2 && t->bits != 4 && t->bits != 8)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "TIFF is %s with %u bits; 1, 2, 4 and 8 are read: convert it to 8 bits",
				  palette ? "a palette" : "gray", t->bits);
	if (t->samples != 1 && !(alpha && t->extra[0] == EXTRASAMPLE_UNASSALPHA))
		return refuse(v, palette ? "a palette and more channels" : "gray and more channels than one of alpha");
	if (t->planar != PLANARCONFIG_CONTIG)
		return refuse(v, "separate planes, and they are not of RGB");
	if (t->compression == COMPRESSION_JPEG && t->bits != 8)
		return refuse(v, "JPEG data of other than 8 bits");
	k->colours = TIFF_INDICES;
	if (!palette)
		fill_grays(k, t->photometric == PHOTOMETRIC_MINISWHITE);
	else if (!fill_palette(file, k))
		return decode_bad(v, SHARD_MISS_DECODE, "TIFF has no palette");
	return DECODE_OK;
}

/* RGB with further channels: an alpha or an unknown one, and then unknown ones. */
static enum decode_status find_rgb(const struct tags *t, struct tiff_kind *k, struct decode_verdict *v)
{
	uint32_t more = t->samples - 3u;
	bool separate = t->planar != PLANARCONFIG_CONTIG;
	bool premultiplied = t->extra_count && t->extra[0] == EXTRASAMPLE_ASSOCALPHA;

	if (t->bits != 8 && t->bits != 16)
		return refuse(v, "RGB of other than 8 or 16 bits");
	if (t->samples < 3 || more > (t->bits == 8 && t->extra_count ? 3 : 1) ||
	    (t->extra_count && t->extra_count != more))
		return refuse(v, "RGB and more channels than are known");
	for (uint32_t i = 1; i < t->extra_count; i++)
		if (t->extra[i] != EXTRASAMPLE_UNSPECIFIED)
			return refuse(v, "RGB and more channels than are known");
	if (separate && (t->bits != 8 || more))
		return refuse(v, "separate planes of other than RGB of 8 bits");
	if (premultiplied && t->bits != 8)
		return refuse(v, "RGB of 16 bits that was multiplied by its alpha");
	k->colours = t->bits == 16 ? TIFF_RGB_16 : premultiplied ? TIFF_PREMULTIPLIED : TIFF_RGB;
	return DECODE_OK;
}

static enum decode_status find_colours(TIFF *file, const struct tags *t, bool wide, struct tiff_kind *k,
				       struct decode_verdict *v)
{
	switch (t->photometric) {
	case PHOTOMETRIC_MINISWHITE:
	case PHOTOMETRIC_MINISBLACK:
	case PHOTOMETRIC_PALETTE:
		return find_indices(file, t, wide, k, v);
	case PHOTOMETRIC_RGB:
		return find_rgb(t, k, v);
	case PHOTOMETRIC_YCBCR:
		if (t->compression != COMPRESSION_JPEG || t->bits != 8 || t->samples != 3 ||
		    t->planar != PLANARCONFIG_CONTIG)
			return refuse(v, "YCbCr that is no JPEG");
		/* else what it says of the size of rows is another one */
		TIFFSetField(file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
		k->colours = TIFF_RGB;
		return DECODE_OK;
	case PHOTOMETRIC_SEPARATED:
		if (t->bits != 8 || t->samples != 4 || t->extra_count || t->compression == COMPRESSION_JPEG ||
		    t->planar != PLANARCONFIG_CONTIG)
			return refuse(v, "inks that are no CMYK of 8 bits");
		k->colours = TIFF_CMYK;
		return DECODE_OK;
	default:
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "TIFF has colours of kind %u (PhotometricInterpretation); gray, palettes, RGB, YCbCr "
				  "and CMYK are read: convert it to RGB of 8 bits",
				  t->photometric);
	}
}

/* Is it of 16 bits, and not of a palette? */
static enum decode_status check_wide(const struct tags *t, struct decode_verdict *v)
{
	char has[40];

	if (t->photometric == PHOTOMETRIC_PALETTE)
		return decode_not_wide(v, "TIFF", "a palette of 8 bits");
	snprintf(has, sizeof(has), "%u bit%s a sample", t->bits, t->bits == 1 ? "" : "s");
	return t->bits == 16 ? DECODE_OK : decode_not_wide(v, "TIFF", has);
}

enum decode_status tiff_kind_find(void *file, uint32_t colours, bool wide, struct tiff_kind *k,
				  struct decode_verdict *v)
{
	struct tags t;
	enum decode_status rc;

	*k = (struct tiff_kind){.planes = 1};
	if (!read_tags(file, &t))
		return decode_bad(v, SHARD_MISS_DECODE, "TIFF does not say what its samples mean");
	if (t.photometric != colours && colours == PHOTOMETRIC_PALETTE)
		return decode_bad(v, SHARD_MISS_DECODE, "TIFF has no palette");
	if (t.photometric != colours)
		return decode_bad(v, SHARD_MISS_DECODE,
				  "TIFF has colours of kind %" PRIu32 ", which libtiff takes for %u", colours,
				  t.photometric);
	if (t.format != SAMPLEFORMAT_UINT)
		return refuse(v,
			      t.format == SAMPLEFORMAT_IEEEFP ? "floating-point samples" : "signed or other samples");
	rc = check_compression(&t, v);
	if (rc == DECODE_OK && wide)
		rc = check_wide(&t, v);
	if (rc != DECODE_OK)
		return rc;
	k->bits = t.bits;
	k->samples = t.samples;
	k->has_alpha = t.extra_count && t.extra[0] != EXTRASAMPLE_UNSPECIFIED;
	if (t.planar != PLANARCONFIG_CONTIG) {
		k->planes = t.samples;
		k->samples = 1;
	}
	rc = find_colours(file, &t, wide, k, v);
	if (rc == DECODE_OK && t.order == FILLORDER_LSB2MSB &&
	    (t.compression == COMPRESSION_NONE || t.samples == 2 || t.samples > 3 || t.bits == 16))
		return refuse(v, "bits in reverse order");
	if (TIFFIsTiled(file)) {
		TIFFGetField(file, TIFFTAG_TILEWIDTH, &k->tile_width);
		TIFFGetField(file, TIFFTAG_TILELENGTH, &k->tile_height);
	}
	return rc;
}

uint64_t tiff_kind_row_bytes(const struct tiff_kind *k, uint32_t width)
{
	return ((uint64_t)width * k->samples * k->bits + 7) / 8;
}

/* ---- pixels ---- */

static void put_indices(const struct tiff_kind *k, const uint8_t *from, uint32_t count, uint8_t *to)
{
	uint32_t mask = (1u << k->bits) - 1;
	size_t bit = 0;

	for (uint32_t i = 0; i < count; i++, to += 3, bit += k->bits * (size_t)k->samples)
		memcpy(to, k->table[from[bit / 8] >> (8 - k->bits - bit % 8) & mask], 3);
}

static void put_16(const struct tiff_kind *k, const uint8_t *from, uint32_t count, uint8_t *to)
{
	for (uint32_t i = 0; i < count; i++, to += 3, from += 2 * (size_t)k->samples)
		for (int c = 0; c < 3; c++) {
			uint16_t sample; /* in the order of this machine */

			memcpy(&sample, from + 2 * c, sizeof(sample));
			to[c] = (uint8_t)(sample >> 8);
		}
}

/* Pillow's arithmetic. */
static void put_premultiplied(const struct tiff_kind *k, const uint8_t *from, uint32_t count, uint8_t *to)
{
	for (uint32_t i = 0; i < count; i++, to += 3, from += k->samples)
		for (int c = 0; c < 3; c++) {
			uint32_t sample = from[3] ? from[c] * 255u / from[3] : 0;

			to[c] = (uint8_t)(sample > 255 ? 255 : sample);
		}
}

/* Likewise. */
static void put_cmyk(const uint8_t *from, uint32_t count, uint8_t *to)
{
	for (uint32_t i = 0; i < count; i++, to += 3, from += 4)
		for (int c = 0; c < 3; c++) {
			uint32_t white = 255u - from[3], ink = from[c] * white + 128;
			int32_t sample = (int32_t)white - (int32_t)(((ink >> 8) + ink) >> 8);

			to[c] = (uint8_t)(sample < 0 ? 0 : sample);
		}
}

/* All 16 bits of each, in the order of this machine as libtiff has them; gray becomes RGB. */
static void put_wide(const struct tiff_kind *k, const uint8_t *from, uint32_t count, uint8_t *to)
{
	size_t step = k->colours == TIFF_GRAY_16 ? 0 : 2;

	for (uint32_t i = 0; i < count; i++, from += 2 * (size_t)k->samples)
		for (size_t c = 0; c < 3; c++, to += 2)
			memcpy(to, from + c * step, 2);
}

void tiff_kind_put(const struct tiff_kind *k, const uint8_t *from, uint32_t count, uint32_t plane, bool wide,
		   uint8_t *to)
{
	if (wide) {
		put_wide(k, from, count, to);
		return;
	}
	switch (k->colours) {
	case TIFF_INDICES:
		put_indices(k, from, count, to);
		break;
	case TIFF_GRAY_16: /* with `wide` only */
		break;
	case TIFF_RGB_16:
		put_16(k, from, count, to);
		break;
	case TIFF_PREMULTIPLIED:
		put_premultiplied(k, from, count, to);
		break;
	case TIFF_CMYK:
		put_cmyk(from, count, to);
		break;
	case TIFF_RGB:
		for (uint32_t i = 0; k->planes == 1 && i < count; i++)
			memcpy(to + 3 * (size_t)i, from + k->samples * (size_t)i, 3);
		for (uint32_t i = 0; k->planes > 1 && plane < 3 && i < count; i++)
			to[3 * (size_t)i + plane] = from[i];
		break;
	}
}
