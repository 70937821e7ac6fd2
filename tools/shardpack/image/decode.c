/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c - which decoder, and what all of them need
 *
 * Looks at the first bytes, never at a name.  Formats that people do have in their folders
 * but that are not read here are known well enough to be called by their names.
 */
#include "tools/shardpack/image/decode.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/shardpack/image/decode_private.h"

/*
 * The most that libjpeg holds for any image within the pixel limit is a progressive CMYK
 * file: 2 bytes * 4 components * 89.5 M = 716 MB.
 */
static const struct decode_options defaults = {
	.max_pixels = DECODE_PIXELS_DEFAULT,
	.max_side = DECODE_SIDE_MAX,
	.max_scans = DECODE_SCANS_DEFAULT,
	.max_memory_bytes = DECODE_MEMORY_DEFAULT_BYTES,
};

enum decode_status decode_bad(struct decode_verdict *v, int reason, const char *format, ...)
{
	va_list args;

	v->reason = reason;
	va_start(args, format);
	vsnprintf(v->message, sizeof(v->message), format, args);
	va_end(args);
	return DECODE_BAD_INPUT;
}

enum decode_status decode_no_memory(struct decode_verdict *v)
{
	v->reason = 0;
	snprintf(v->message, sizeof(v->message), "out of memory while decoding");
	return DECODE_NO_MEMORY;
}

enum decode_status decode_bad_channels(struct decode_verdict *v, const char *format, int channel_count)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED, "%s has %d channels: a mask has one, save it as gray or with a palette",
			  format, channel_count);
}

enum decode_status decode_bad_value(struct decode_verdict *v, const char *format, uint32_t value, uint32_t x, uint32_t y)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has the value %" PRIu32 " at column %" PRIu32 " of row %" PRIu32 ": a mask holds 0 to 255",
			  format, value, x, y);
}

enum decode_status decode_check_size(struct decoder *d, uint64_t width, uint64_t height, struct decode_verdict *v)
{
	const struct decode_options *limit = &d->limit;
	char what_to_do[64] = "";

	if (limit->max_side < DECODE_SIDE_MAX && width <= DECODE_SIDE_MAX && height <= DECODE_SIDE_MAX)
		snprintf(what_to_do, sizeof(what_to_do), "; --limit side=%" PRIu64 " takes it", width > height ? width : height);
	if (width > limit->max_side || height > limit->max_side)
		return decode_bad(v, SHARD_MISS_LIMIT,
				  "is %" PRIu64 " x %" PRIu64 " pixels: a side is longer than the limit of %" PRIu32 "%s",
				  width, height, limit->max_side, what_to_do);
	if (width * height > limit->max_pixels)
		return decode_bad(v, SHARD_MISS_LIMIT,
				  "is %" PRIu64 " x %" PRIu64 " = %" PRIu64 " pixels: more than the limit of %" PRIu64
				  "; --limit pixels=%" PRIu64 " takes it",
				  width, height, width * height, limit->max_pixels, width * height);
	return DECODE_OK;
}

void decode_claim(struct decoder *d, uint64_t bytes)
{
	if (d->limit.claim)
		d->limit.claim(d->limit.context, bytes);
}

enum decode_status decode_begin(struct decoder *d, uint64_t width, uint64_t height, struct image *out,
				struct decode_verdict *v)
{
	enum decode_status rc = decode_check_size(d, width, height, v);

	if (rc)
		return rc;
	decode_claim(d, width * height * d->pixel_bytes);
	if (!scratch_reserve(&d->pixels, (size_t)(width * height * d->pixel_bytes)))
		return decode_no_memory(v);
	out->pixels = d->pixels.data;
	out->width = (uint32_t)width;
	out->height = (uint32_t)height;
	return DECODE_OK;
}

uint8_t *decode_row(struct decoder *d, const struct image *out, uint32_t y)
{
	return d->pixels.data + (size_t)y * out->width * d->pixel_bytes;
}

void decode_spread_gray(uint8_t *row, uint32_t width)
{
	const uint8_t *gray = decode_narrow_row(row, width);

	for (uint32_t i = 0; i < width; i++, row += IMAGE_CHANNELS) {
		uint8_t g = gray[i];

		row[0] = g;
		row[1] = g;
		row[2] = g;
	}
}

uint32_t decode_16_to_8(const uint8_t *row, uint32_t width, uint8_t *to, uint32_t *bad_x)
{
	uint32_t bad = 0;

	for (uint32_t i = 0; i < width; i++) {
		uint32_t value = (uint32_t)row[2 * (size_t)i] << 8 | row[2 * (size_t)i + 1];

		if (value > 255 && !bad) {
			bad = value;
			*bad_x = i;
		}
		to[i] = (uint8_t)value;
	}
	return bad;
}

struct decoder *decoder_open(const struct decode_options *opt)
{
	struct decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->limit = opt ? *opt : defaults;
	if (!d->limit.max_pixels)
		d->limit.max_pixels = defaults.max_pixels;
	if (!d->limit.max_side || d->limit.max_side > defaults.max_side)
		d->limit.max_side = defaults.max_side;
	if (!d->limit.max_scans)
		d->limit.max_scans = defaults.max_scans;
	if (!d->limit.max_memory_bytes || d->limit.max_memory_bytes > LONG_MAX) /* libjpeg's type */
		d->limit.max_memory_bytes = defaults.max_memory_bytes;
	return d;
}

void decoder_close(struct decoder *d)
{
	if (!d)
		return;
	scratch_free(&d->pixels);
	scratch_free(&d->line);
	free(d);
}

#define KEPT_BYTES ((size_t)8 << 20) /* of pixels, from image to image; more than any strip of rows needs */

/* A format's first bytes; `?` in the pattern is any byte. */
struct magic {
	const char *pattern;
	uint8_t length;
	const char *tag, *name; /* tag: the first bytes as text, where people know them */
	enum decode_status (*run)(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
				  struct decode_verdict *v);
};

#define MAGIC(s) s, sizeof(s) - 1

static const struct magic magics[] = {
	{MAGIC("\xff\xd8\xff"), NULL, "JPEG", jpeg_run},
	{MAGIC("\x89PNG\r\n\x1a\n"), NULL, "PNG", png_run},
	{MAGIC("RIFF????WEBP"), NULL, "WebP", webp_run},
	{MAGIC("GIF8"), "GIF8", "GIF", NULL},
	{MAGIC("BM????\0\0\0\0"), NULL, "BMP", bmp_run},
	{MAGIC("II*\0"), "II", "TIFF", NULL},
	{MAGIC("MM\0*"), "MM", "TIFF", NULL},
	{MAGIC("II+\0"), "II", "TIFF", NULL},
	{MAGIC("MM\0+"), "MM", "TIFF", NULL},
	{MAGIC("P1\n"), "P1", "PBM", NULL},
	{MAGIC("P2\n"), "P2", "PGM", NULL},
	{MAGIC("P3\n"), "P3", "PPM", NULL},
	{MAGIC("P4\n"), "P4", "PBM", NULL},
	{MAGIC("P5\n"), NULL, "PGM", ppm_run},
	{MAGIC("P5 "), NULL, "PGM", ppm_run},
	{MAGIC("P6\n"), NULL, "PPM", ppm_run},
	{MAGIC("P6 "), NULL, "PPM", ppm_run},
	{MAGIC("P7\n"), "P7", "PAM", NULL},
	{MAGIC("????ftypavif"), NULL, "AVIF", NULL},
	{MAGIC("????ftyphei"), NULL, "HEIF", NULL},
	{MAGIC("????ftypmif1"), NULL, "HEIF", NULL},
	{MAGIC("\xff\x0a"), NULL, "JPEG XL", NULL},
	{MAGIC("\0\0\0\x0cJXL \r\n\x87\n"), NULL, "JPEG XL", NULL},
	{MAGIC("\0\0\0\x0cjP  \r\n\x87\n"), NULL, "JPEG 2000", NULL},
};

static bool starts_with(const uint8_t *bytes, size_t size, const struct magic *m)
{
	if (size < m->length)
		return false;
	for (size_t i = 0; i < m->length; i++)
		if (m->pattern[i] != '?' && (uint8_t)m->pattern[i] != bytes[i])
			return false;
	return true;
}

#define HEX_BYTES     16 /* enough for every magic */

/* The first bytes as hex, for a message. */
static const char *first_bytes(const uint8_t *bytes, size_t count, char text[3 * HEX_BYTES + 1])
{
	for (size_t i = 0; i < count; i++)
		snprintf(text + 3 * i, 4, i + 1 < count ? "%02x " : "%02x", bytes[i]);
	return text;
}

static enum decode_status run(struct decoder *d, const void *bytes, size_t size, uint32_t channels, struct image *out,
			      struct decode_verdict *v)
{
	const char *instead = channels == 1 ? "PNG" : "JPEG or PNG";
	char hex[3 * HEX_BYTES + 1];

	d->channels = channels;
	d->pixel_bytes = channels;
	v->reason = 0;
	v->message[0] = '\0';
	if (!size)
		return decode_bad(v, SHARD_MISS_EMPTY, "is empty (0 bytes)");
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		const struct magic *m = &magics[i];

		if (!starts_with(bytes, size, m))
			continue;
		if (m->run)
			return m->run(d, bytes, size, out, v);
		if (m->tag)
			return decode_bad(v, SHARD_MISS_UNSUPPORTED, "starts with %s (%s): %s is not supported, convert it to %s",
					  first_bytes(bytes, strlen(m->tag), hex), m->tag, m->name, instead);
		return decode_bad(v, SHARD_MISS_UNSUPPORTED, "starts with %s: %s is not supported, convert it to %s",
				  first_bytes(bytes, m->length, hex), m->name, instead);
	}
	if (size >= 4 && memcmp(bytes, "\0\5\26\7", 4) == 0)
		return decode_bad(v, SHARD_MISS_NOT_AN_IMAGE, "is AppleDouble: what macOS keeps beside a file, not an image; remove all such files: find SRC -name '._*' -delete");
	return decode_bad(v, SHARD_MISS_NOT_AN_IMAGE, "starts with %s: not %s",
			  first_bytes(bytes, size < HEX_BYTES ? size : HEX_BYTES, hex),
			  channels == 1 ? "a mask (PNG, BMP, PGM)" : "an image (JPEG, PNG, WebP, BMP, PPM)");
}

enum decode_status decoder_run(struct decoder *d, const void *bytes, size_t size, struct image *out,
			       struct decode_verdict *v)
{
	d->sink = NULL;
	return run(d, bytes, size, IMAGE_CHANNELS, out, v);
}

static enum decode_status stream(struct decoder *d, const void *bytes, size_t size, uint32_t channels,
				 const struct image_sink *sink, struct decode_verdict *v)
{
	struct image image;
	enum decode_status rc;

	d->sink = sink;
	d->sink_begun = false;
	rc = run(d, bytes, size, channels, &image, v);
	if (rc == DECODE_OK && !d->sink_begun && /* it was decoded as a whole */
	    !image_give(sink, &(struct image_size){.width = image.width, .height = image.height, .scale = 1}, image.pixels, channels))
		return decode_no_memory(v);
	if (d->pixels.capacity_bytes > KEPT_BYTES)
		scratch_free(&d->pixels);
	return rc;
}

enum decode_status decoder_stream(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				  struct decode_verdict *v)
{
	return stream(d, bytes, size, IMAGE_CHANNELS, sink, v);
}

enum decode_status decoder_mask(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				struct decode_verdict *v)
{
	return stream(d, bytes, size, 1, sink, v);
}
