/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_tiff.c - the first page of a TIFF to RGB, through libtiff
 *
 * Read are the kinds of which Pillow makes RGB, all its versions in the same way; others are called
 * by their name.  Rows are read one after the other and tiles one by one, so beside the image there
 * is never more than one of them.
 *
 * What libtiff says goes into the verdict.  Its warnings are verdicts, too, for it makes up what it
 * cannot read; but for those that are about tags which nobody asks for.
 */
#include "tools/shardpack/images/images.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "shard_pack.h"

struct tiff {
	TIFF *file;
	struct decoder *d;
	struct image *out;
	struct decode_verdict *v;
	const uint8_t *bytes;
	size_t size, at;
	char said[160]; /* by libtiff; the first of all */
	struct tiff_pages pages;
	struct tiff_kind kind;
};

/* ---- what libtiff says ---- */

static void note(struct tiff *t, const char *format, va_list args)
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
	note(handle, format, args);
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
	note(handle, format, args);
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

static enum decode_status read_row(struct tiff *t, uint32_t y, uint16_t plane)
{
	if (TIFFReadScanline(t->file, t->d->line.data, y, plane) != 1 || t->said[0])
		return refuse(t);
	tiff_kind_put(&t->kind, t->d->line.data, t->out->width, plane, t->d->wide, decode_row(t->d, t->out, y));
	return DECODE_OK;
}

/* Strips are packed rows: each in the order of the file. */
static enum decode_status read_rows(struct tiff *t)
{
	tmsize_t row_bytes = TIFFScanlineSize(t->file);
	enum decode_status rc = DECODE_OK;

	if (row_bytes <= 0 || (uint64_t)row_bytes != tiff_kind_row_bytes(&t->kind, t->out->width))
		return decode_bad(t->v, SHARD_MISS_DECODE, "TIFF has rows of %" PRId64 " bytes for %" PRIu32 " pixels",
				  (int64_t)row_bytes, t->out->width);
	if (!scratch_reserve(&t->d->line, (size_t)row_bytes))
		return decode_no_memory(t->v);
	for (uint16_t plane = 0; plane < t->kind.planes; plane++)
		for (uint32_t y = 0; rc == DECODE_OK && y < t->out->height; y++)
			rc = read_row(t, y, plane);
	return rc;
}

static enum decode_status read_tile(struct tiff *t, uint32_t x, uint32_t y, uint16_t plane)
{
	uint32_t columns = t->out->width - x, rows = t->out->height - y;
	size_t row_bytes = (size_t)tiff_kind_row_bytes(&t->kind, t->kind.tile_width);

	columns = columns < t->kind.tile_width ? columns : t->kind.tile_width;
	rows = rows < t->kind.tile_height ? rows : t->kind.tile_height;
	if (TIFFReadTile(t->file, t->d->line.data, x, y, 0, plane) < 0 || t->said[0])
		return refuse(t);
	for (uint32_t i = 0; i < rows; i++)
		tiff_kind_put(&t->kind, t->d->line.data + i * row_bytes, columns, plane, t->d->wide,
			      decode_row(t->d, t->out, y + i) + t->d->pixel_bytes * (size_t)x);
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
		for (uint32_t y = 0; y < t->out->height; y += height)
			for (uint32_t x = 0; rc == DECODE_OK && x < t->out->width; x += width)
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
		rc = decode_begin(t->d, width, height, t->out, t->v);
	if (rc != DECODE_OK)
		return rc;
	return TIFFIsTiled(t->file) ? read_tiles(t) : read_rows(t);
}

enum decode_status tiff_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct tiff t = {.d = d, .out = out, .v = v, .bytes = bytes, .size = size};
	enum decode_status rc = tiff_pages(bytes, size, &t.pages, v);

	if (rc == DECODE_OK)
		rc = decode_first_of(t.pages.count, "TIFF", "pages", d->limit.max_frames, v);
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
