/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_tiff.c - the first page of a TIFF to RGB, through libtiff
 *
 * Read are the kinds of which Pillow makes RGB, all its versions in the same way; others are called
 * by their name.  Rows are read one after the other and tiles one by one, so beside the image there
 * is never more than one of them.
 *
 * What libtiff says goes into the verdict.  Its warnings are verdicts, too, for it makes up what it
 * cannot read; except the ones about tags that shardpack does not ask for.
 */
#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tiffio.h>

#include "shard_inspect.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/parse/parse.h"

/* ---- how many pages a file has ---- */

/*
 * libtiff would read all that each of them says, and keep something of it.  It also takes a palette
 * that is not there for shades of gray, so what the first page says of that is looked up here.
 */

#define HEAD_BYTES  8
#define ENTRY_BYTES 12
#define TAG_COLOURS 262
#define PAGE_BYTES  6 /* at least: a count of entries, and where the next page is */

static uint32_t number(const uint8_t *at, unsigned bytes, bool big)
{
	return (uint32_t)integer_load(at, bytes, false, big);
}

#define TIFF_NO_COLOURS UINT32_MAX

/* Of the page at `at`, whose tags are all there. */
static uint32_t photometric_of(const uint8_t *bytes, size_t at, bool big)
{
	const uint8_t *entry = bytes + at + 2, *end = entry + number(bytes + at, 2, big) * (size_t)ENTRY_BYTES;

	for (; entry < end; entry += ENTRY_BYTES)
		if (number(entry, 2, big) == TAG_COLOURS)
			return number(entry + 8, 2, big);
	return TIFF_NO_COLOURS;
}

struct tiff_pages {
	uint64_t count;
	uint32_t colours; /* PhotometricInterpretation of the first one, or TIFF_NO_COLOURS */
};

/* Pages are a list in the file.  Bad input if it has none, leaves the file or never ends. */
static enum decode_status tiff_pages(const uint8_t *bytes, size_t size, struct tiff_pages *out,
				     struct decode_verdict *v)
{
	bool big = size && bytes[0] == 'M';
	uint64_t at = size < HEAD_BYTES ? size : number(bytes + 4, 4, big), next;

	for (out->count = 0; at; out->count++) {
		if (out->count > size / PAGE_BYTES)
			return decode_bad(v, SHARD_MISS_DAMAGED, "TIFF data is damaged: its pages go in a circle");
		next = at + 2 > size ? size : at + 2 + number(bytes + at, 2, big) * (uint64_t)ENTRY_BYTES;
		if (next + 4 > size)
			return decode_bad(v, SHARD_MISS_TRUNCATED,
					  "TIFF data ends early: within the tags of page %" PRIu64, out->count + 1);
		if (!out->count)
			out->colours = photometric_of(bytes, (size_t)at, big);
		at = number(bytes + next, 4, big);
	}
	return out->count ? DECODE_OK : decode_bad(v, SHARD_MISS_DECODE, "TIFF has no page");
}

/* ---- what the samples mean, and RGB made of them ---- */

/* All that the tags say about the samples. */
struct tags {
	uint16_t bits, samples, photometric, compression, planar, format, order;
	uint16_t extra_count, *extra;
};

static enum decode_status not_read(struct decode_verdict *v, const char *what)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED, "TIFF has %s: convert it to RGB of 8 bits", what);
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

enum tiff_colours { TIFF_INDICES, TIFF_RGB, TIFF_RGB_16, TIFF_GRAY_16, TIFF_PREMULTIPLIED, TIFF_CMYK };

struct tiff_kind {
	enum tiff_colours colours;
	uint32_t bits, samples;		  /* of a pixel: bits of each sample; samples of one plane */
	uint16_t planes;		  /* 1, or each sample has its own */
	uint32_t tile_width, tile_height; /* 0: strips */
	bool has_alpha;
	uint8_t table[256][3]; /* what values of one sample mean: shades of gray or a palette */
};

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
	uint32_t most;

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
		return not_read(v,
				palette ? "a palette and more channels" : "gray and more channels than one of alpha");
	if (t->planar != PLANARCONFIG_CONTIG)
		return not_read(v, "separate planes, and they are not of RGB");
	if (t->compression == COMPRESSION_JPEG && t->bits != 8)
		return not_read(v, "JPEG data of other than 8 bits");
	k->colours = TIFF_INDICES;
	if (palette)
		return fill_palette(file, k) ? DECODE_OK : decode_bad(v, SHARD_MISS_DECODE, "TIFF has no palette");
	most = (1u << k->bits) - 1;
	for (uint32_t i = 0; i <= most; i++) /* gray, from black or from white */
		memset(k->table[i], (int)(255 / most * (t->photometric == PHOTOMETRIC_MINISWHITE ? most - i : i)), 3);
	return DECODE_OK;
}

/* RGB with further channels: an alpha or an unknown one, and then unknown ones. */
static enum decode_status find_rgb(const struct tags *t, struct tiff_kind *k, struct decode_verdict *v)
{
	uint32_t more = t->samples - 3u;
	bool separate = t->planar != PLANARCONFIG_CONTIG;
	bool premultiplied = t->extra_count && t->extra[0] == EXTRASAMPLE_ASSOCALPHA;

	if (t->bits != 8 && t->bits != 16)
		return not_read(v, "RGB of other than 8 or 16 bits");
	if (t->samples < 3 || more > (t->bits == 8 && t->extra_count ? 3 : 1) ||
	    (t->extra_count && t->extra_count != more))
		return not_read(v, "RGB and more channels than are known");
	for (uint32_t i = 1; i < t->extra_count; i++)
		if (t->extra[i] != EXTRASAMPLE_UNSPECIFIED)
			return not_read(v, "RGB and more channels than are known");
	if (separate && (t->bits != 8 || more))
		return not_read(v, "separate planes of other than RGB of 8 bits");
	if (premultiplied && t->bits != 8)
		return not_read(v, "RGB of 16 bits that was multiplied by its alpha");
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
			return not_read(v, "YCbCr that is not JPEG");
		/* else what it says of the size of rows is another one */
		TIFFSetField(file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
		k->colours = TIFF_RGB;
		return DECODE_OK;
	case PHOTOMETRIC_SEPARATED:
		if (t->bits != 8 || t->samples != 4 || t->extra_count || t->compression == COMPRESSION_JPEG ||
		    t->planar != PLANARCONFIG_CONTIG)
			return not_read(v, "inks that are not CMYK of 8 bits");
		k->colours = TIFF_CMYK;
		return DECODE_OK;
	default:
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "TIFF has colours of kind %u (PhotometricInterpretation); gray, palettes, RGB, YCbCr "
				  "and CMYK are read: convert it to RGB of 8 bits",
				  t->photometric);
	}
}

/*
 * `file` is a TIFF that is open, and `colours` what it says these are.  Bad input, with its kind in
 * the verdict, if it is not read.  With `wide` the ones are read that have 16 bits a sample, gray or
 * RGB.
 */
static enum decode_status tiff_kind_find(TIFF *file, uint32_t colours, bool wide, struct tiff_kind *k,
					 struct decode_verdict *v)
{
	struct tags t = {.bits = 1};
	enum decode_status rc;
	char has[40];

	*k = (struct tiff_kind){.planes = 1};
	TIFFGetFieldDefaulted(file, TIFFTAG_BITSPERSAMPLE, &t.bits);
	TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLESPERPIXEL, &t.samples);
	TIFFGetFieldDefaulted(file, TIFFTAG_COMPRESSION, &t.compression);
	TIFFGetFieldDefaulted(file, TIFFTAG_PLANARCONFIG, &t.planar);
	TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLEFORMAT, &t.format);
	TIFFGetFieldDefaulted(file, TIFFTAG_FILLORDER, &t.order);
	if (!TIFFGetField(file, TIFFTAG_EXTRASAMPLES, &t.extra_count, &t.extra))
		t.extra_count = 0;
	if (!TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &t.photometric))
		return decode_bad(v, SHARD_MISS_DECODE, "TIFF does not say what its samples mean");
	if (t.photometric != colours && colours == PHOTOMETRIC_PALETTE)
		return decode_bad(v, SHARD_MISS_DECODE, "TIFF has no palette");
	if (t.photometric != colours)
		return decode_bad(v, SHARD_MISS_DECODE,
				  "TIFF has colours of kind %" PRIu32 ", which libtiff takes for %u", colours,
				  t.photometric);
	if (t.format != SAMPLEFORMAT_UINT)
		return not_read(v,
				t.format == SAMPLEFORMAT_IEEEFP ? "floating-point samples" : "signed or other samples");
	rc = check_compression(&t, v);
	if (rc == DECODE_OK && wide && t.photometric == PHOTOMETRIC_PALETTE)
		rc = decode_not_wide(v, "TIFF", "a palette of 8 bits");
	snprintf(has, sizeof(has), "%u bit%s a sample", t.bits, t.bits == 1 ? "" : "s");
	if (rc == DECODE_OK && wide && t.bits != 16)
		rc = decode_not_wide(v, "TIFF", has);
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
		return not_read(v, "bits in reverse order");
	if (TIFFIsTiled(file)) {
		TIFFGetField(file, TIFFTAG_TILEWIDTH, &k->tile_width);
		TIFFGetField(file, TIFFTAG_TILELENGTH, &k->tile_height);
	}
	return rc;
}

/* Of one plane. */
static uint64_t tiff_kind_row_bytes(const struct tiff_kind *k, uint32_t width)
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

/* Pixels of one plane to RGB; with `wide` to RGB of 16 bits. */
static void tiff_kind_put(const struct tiff_kind *k, const uint8_t *from, uint32_t count, uint32_t plane, bool wide,
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

/* ---- decoding ---- */

struct tiff {
	TIFF *file;
	struct decoder *d;
	struct decode_verdict *v;
	const uint8_t *bytes;
	size_t size, at;
	char said[160]; /* by libtiff; the first of all */
	struct tiff_pages pages;
	struct tiff_kind kind;
};

/* ---- what libtiff says ---- */

static void remember(struct tiff *t, const char *format, va_list args)
{
	if (!t || t->said[0])
		return;
	vsnprintf(t->said, sizeof(t->said), format, args);
	for (char *c = t->said; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

static void on_error(thandle_t handle, const char *module, const char *format, va_list args)
{
	(void)module;
	remember(handle, format, args);
}

/* As libtiff has these sentences, before their values are put in. */
static void on_warning(thandle_t handle, const char *module, const char *format, va_list args)
{
	static const char *const harmless[] = {"Unknown field with tag", "ASCII value for tag",
					       "Invalid TIFF directory; tags are not sorted",
					       "Sum of Photometric type-related color channels"};

	(void)module;
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (!strncmp(format, harmless[i], strlen(harmless[i])))
			return;
	remember(handle, format, args);
}

/* There is one handler for all files of a program; which file it is about they are told. */
static void set_handlers(void)
{
	TIFFSetErrorHandler(NULL);
	TIFFSetWarningHandler(NULL);
	TIFFSetErrorHandlerExt(on_error);
	TIFFSetWarningHandlerExt(on_warning);
}

static enum decode_status refuse(const struct tiff *t)
{
	return decode_bad(t->v, SHARD_MISS_DECODE, "TIFF cannot be decoded: %s",
			  t->said[0] ? t->said : "libtiff does not say why");
}

/* ---- the bytes, which lie in memory ---- */

static tmsize_t on_read(thandle_t handle, void *to, tmsize_t bytes)
{
	struct tiff *t = handle;
	size_t left = t->at < t->size ? t->size - t->at : 0, n = (size_t)bytes < left ? (size_t)bytes : left;

	memcpy(to, t->bytes + (n ? t->at : 0), n);
	t->at += n;
	return (tmsize_t)n;
}

static tmsize_t on_write(thandle_t handle, void *from, tmsize_t bytes)
{
	(void)handle;
	(void)from;
	(void)bytes;
	return 0;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence)
{
	struct tiff *t = handle;

	t->at = (size_t)offset + (whence == SEEK_CUR ? t->at : whence == SEEK_END ? t->size : 0);
	return t->at;
}

static int on_close(thandle_t handle)
{
	(void)handle;
	return 0;
}

static toff_t on_size(thandle_t handle)
{
	return ((struct tiff *)handle)->size;
}

/* ---- pixels ---- */

/* Strips are packed rows: each in the order of the file. */
static enum decode_status read_rows(struct tiff *t)
{
	tmsize_t row_bytes = TIFFScanlineSize(t->file);

	if (row_bytes <= 0 || (uint64_t)row_bytes != tiff_kind_row_bytes(&t->kind, t->d->width))
		return decode_bad(t->v, SHARD_MISS_DECODE, "TIFF has rows of %" PRId64 " bytes for %" PRIu32 " pixels",
				  (int64_t)row_bytes, t->d->width);
	if (!scratch_reserve(&t->d->line, (size_t)row_bytes))
		return decode_no_memory(t->v);
	for (uint16_t plane = 0; plane < t->kind.planes; plane++)
		for (uint32_t y = 0; y < t->d->height; y++) {
			if (TIFFReadScanline(t->file, t->d->line.data, y, plane) != 1 || t->said[0])
				return refuse(t);
			tiff_kind_put(&t->kind, t->d->line.data, t->d->width, plane, t->d->wide, decode_row(t->d, y));
		}
	return DECODE_OK;
}

static enum decode_status read_tile(struct tiff *t, uint32_t x, uint32_t y, uint16_t plane)
{
	uint32_t columns = t->d->width - x, rows = t->d->height - y;
	size_t row_bytes = (size_t)tiff_kind_row_bytes(&t->kind, t->kind.tile_width);

	columns = columns < t->kind.tile_width ? columns : t->kind.tile_width;
	rows = rows < t->kind.tile_height ? rows : t->kind.tile_height;
	if (TIFFReadTile(t->file, t->d->line.data, x, y, 0, plane) < 0 || t->said[0])
		return refuse(t);
	for (uint32_t i = 0; i < rows; i++)
		tiff_kind_put(&t->kind, t->d->line.data + i * row_bytes, columns, plane, t->d->wide,
			      decode_row(t->d, y + i) + t->d->pixel_bytes * (size_t)x);
	return DECODE_OK;
}

/* A tile may be larger than the image, so it is held against the same limits. */
static enum decode_status read_tiles(struct tiff *t)
{
	uint32_t width = t->kind.tile_width, height = t->kind.tile_height;
	tmsize_t bytes = TIFFTileSize(t->file);
	enum decode_status rc = DECODE_OK;

	if (!width || !height || (uint64_t)width * height > t->d->limit.max_pixels)
		return decode_bad(t->v, SHARD_MISS_LIMIT,
				  "has tiles of %" PRIu32 " x %" PRIu32 " pixels: more than the limit of %" PRIu64,
				  width, height, t->d->limit.max_pixels);
	if (bytes <= 0 || (uint64_t)bytes != height * tiff_kind_row_bytes(&t->kind, width))
		return decode_bad(t->v, SHARD_MISS_DECODE, "TIFF has tiles of %" PRId64 " bytes", (int64_t)bytes);
	if (!scratch_reserve(&t->d->line, (size_t)bytes))
		return decode_no_memory(t->v);
	for (uint16_t plane = 0; plane < t->kind.planes; plane++)
		for (uint32_t y = 0; y < t->d->height; y += height)
			for (uint32_t x = 0; rc == DECODE_OK && x < t->d->width; x += width)
				rc = read_tile(t, x, y, plane);
	return rc;
}

/* Is each strip or tile within the file? */
static enum decode_status check_there(const struct tiff *t)
{
	bool tiled = TIFFIsTiled(t->file);
	uint32_t count = tiled ? TIFFNumberOfTiles(t->file) : TIFFNumberOfStrips(t->file);
	uint64_t *offset = NULL, *bytes = NULL;

	if (!TIFFGetField(t->file, tiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS, &offset) ||
	    !TIFFGetField(t->file, tiled ? TIFFTAG_TILEBYTECOUNTS : TIFFTAG_STRIPBYTECOUNTS, &bytes) || !offset ||
	    !bytes)
		return refuse(t);
	for (uint32_t i = 0; i < count; i++)
		if (offset[i] > t->size || bytes[i] > t->size - offset[i])
			return decode_bad(t->v, SHARD_MISS_TRUNCATED,
					  "TIFF data ends early: %s %" PRIu32 " is %" PRIu64 " bytes at %" PRIu64
					  ", and the file has %zu",
					  tiled ? "tile" : "strip", i, bytes[i], offset[i], t->size);
	return DECODE_OK;
}

static void note_dropped(const struct tiff *t)
{
	uint32_t bytes = 0;
	void *profile = NULL;

	if (t->kind.has_alpha)
		decode_drop(t->v, DROPPED_ALPHA);
	if (t->kind.bits > 8 && !t->d->wide)
		decode_drop(t->v, DROPPED_BITS);
	if (t->kind.colours == TIFF_CMYK)
		decode_drop(t->v, DROPPED_CMYK);
	if (TIFFGetField(t->file, TIFFTAG_ICCPROFILE, &bytes, &profile) && !icc_is_like_srgb(profile, bytes))
		decode_drop(t->v, DROPPED_PROFILE);
}

static enum decode_status read_page(struct tiff *t)
{
	uint32_t width = 0, height = 0;
	enum decode_status rc;

	TIFFGetField(t->file, TIFFTAG_IMAGEWIDTH, &width);
	TIFFGetField(t->file, TIFFTAG_IMAGELENGTH, &height);
	if (!width || !height)
		return decode_bad(t->v, SHARD_MISS_DECODE, "TIFF has no pixels");
	rc = decode_check_size(t->d, width, height, t->v);
	if (rc == DECODE_OK)
		rc = tiff_kind_find(t->file, t->pages.colours, t->d->wide, &t->kind, t->v);
	if (rc == DECODE_OK && t->said[0])
		rc = refuse(t);
	if (rc == DECODE_OK)
		note_dropped(t);
	/* At once, for the first claim is what counts: the image, and a row or a tile. */
	if (rc == DECODE_OK)
		decode_claim(t->d, (uint64_t)t->d->pixel_bytes * width * height +
					   t->kind.tile_height * tiff_kind_row_bytes(&t->kind, t->kind.tile_width));
	if (rc == DECODE_OK)
		rc = check_there(t);
	if (rc == DECODE_OK)
		rc = decode_begin(t->d, width, height, t->v);
	if (rc != DECODE_OK)
		return rc;
	return TIFFIsTiled(t->file) ? read_tiles(t) : read_rows(t);
}

enum decode_status tiff_run(struct decoder *d, const uint8_t *bytes, size_t size, struct decode_verdict *v)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct tiff t = {.d = d, .v = v, .bytes = bytes, .size = size};
	enum decode_status rc = tiff_pages(bytes, size, &t.pages, v);

	if (rc == DECODE_OK)
		rc = decode_first_of(d, t.pages.count, "TIFF", "pages", v);
	if (rc != DECODE_OK)
		return rc;
	pthread_once(&once, set_handlers);
	t.file = TIFFClientOpen("TIFF", "rm", &t, on_read, on_write, on_seek, on_close, on_size, NULL, NULL);
	rc = t.file ? read_page(&t) : refuse(&t);
	if (t.file)
		TIFFClose(t.file);
	return rc;
}

static char version[32]; /* set once */

/* Out of "LIBTIFF, Version 4.5.0", which goes on with further lines. */
static void set_version(void)
{
	const char *all = TIFFGetVersion(), *at = strstr(all, "Version ");

	at = at ? at + strlen("Version ") : all;
	snprintf(version, sizeof(version), "libtiff %.*s", (int)strcspn(at, "\n"), at);
}

const char *decoder_tiff_version(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_version);
	return version;
}
