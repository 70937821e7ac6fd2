/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c - which decoder
 *
 * Looks at the first bytes, never at a name.  Formats that people do have in their folders
 * but that are not read here are known well enough to be called by their names.
 */
#include "tools/shardpack/images/images.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "shard_pack.h"

/*
 * The most that libjpeg holds for any image within the pixel limit is a progressive CMYK
 * file: 2 bytes * 4 components * 89.5 M = 716 MB.
 */
static const struct decode_options defaults = {
	.max_pixels = DECODE_PIXELS_DEFAULT,
	.max_side = DECODE_SIDE_MAX,
	.max_scans = DECODE_SCANS_DEFAULT,
	.max_frames = DECODE_FRAMES_DEFAULT,
	.max_memory_bytes = DECODE_MEMORY_DEFAULT_BYTES,
};

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
	if (!d->limit.max_frames)
		d->limit.max_frames = defaults.max_frames;
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
	bool images_only;	/* no mask is read from it */
	const char *narrow;	/* NULL if it is read with 16 bits a sample; or with how many it is read */
	enum decode_status (*run)(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
				  struct decode_verdict *v);
	bool (*is)(const uint8_t *bytes, size_t size); /* NULL, or what else must be true of the file */
};

#define MAGIC(s) s, sizeof(s) - 1

static const struct magic magics[] = {
	{MAGIC("\xff\xd8\xff"), NULL, "JPEG", false, "8 bits a sample", jpeg_run, NULL},
	{MAGIC("\x89PNG\r\n\x1a\n"), NULL, "PNG", false, NULL, png_run, NULL},
	{MAGIC("RIFF????WEBP"), NULL, "WebP", false, "8 bits a sample", webp_run, NULL},
	{MAGIC("GIF8"), "GIF8", "GIF", true, "8 bits a sample", gif_run, NULL},
	{MAGIC("BM????\0\0\0\0"), NULL, "BMP", false, "8 bits a sample", bmp_run, NULL},
	{MAGIC("II*\0"), "II", "TIFF", true, NULL, tiff_run, NULL},
	{MAGIC("MM\0*"), "MM", "TIFF", true, NULL, tiff_run, NULL},
	{MAGIC("II+\0"), "II", "BigTIFF", false, NULL, NULL, NULL},
	{MAGIC("MM\0+"), "MM", "BigTIFF", false, NULL, NULL, NULL},
	{MAGIC("P1\n"), "P1", "PBM", false, NULL, NULL, NULL},
	{MAGIC("P2\n"), "P2", "PGM", false, NULL, NULL, NULL},
	{MAGIC("P3\n"), "P3", "PPM", false, NULL, NULL, NULL},
	{MAGIC("P4\n"), "P4", "PBM", false, NULL, NULL, NULL},
	{MAGIC("P5\n"), NULL, "PGM", false, "samples that are read as 8 bits", ppm_run, NULL},
	{MAGIC("P5 "), NULL, "PGM", false, "samples that are read as 8 bits", ppm_run, NULL},
	{MAGIC("P6\n"), NULL, "PPM", false, "samples that are read as 8 bits", ppm_run, NULL},
	{MAGIC("P6 "), NULL, "PPM", false, "samples that are read as 8 bits", ppm_run, NULL},
	{MAGIC("P7\n"), "P7", "PAM", false, NULL, NULL, NULL},
	{MAGIC("????ftyp"), "ftyp", "AVIF", true, "at most 12 bits a sample", avif_run, heif_is_avif},
	{MAGIC("????ftyphei"), NULL, "HEIF", false, NULL, NULL, NULL},
	{MAGIC("????ftypmif1"), NULL, "HEIF", false, NULL, NULL, NULL},
	{MAGIC("\xff\x0a"), NULL, "JPEG XL", false, NULL, NULL, NULL},
	{MAGIC("\0\0\0\x0cJXL \r\n\x87\n"), NULL, "JPEG XL", false, NULL, NULL, NULL},
	{MAGIC("\0\0\0\x0cjP  \r\n\x87\n"), NULL, "JPEG 2000", false, NULL, NULL, NULL},
};

static bool starts_with(const uint8_t *bytes, size_t size, const struct magic *m)
{
	if (size < m->length)
		return false;
	for (size_t i = 0; i < m->length; i++)
		if (m->pattern[i] != '?' && (uint8_t)m->pattern[i] != bytes[i])
			return false;
	return !m->is || m->is(bytes, size);
}

#define HEX_BYTES 16 /* enough for every magic */

/* The first bytes as hex, for a message. */
static const char *first_bytes(const uint8_t *bytes, size_t count, char text[3 * HEX_BYTES + 1])
{
	for (size_t i = 0; i < count; i++)
		snprintf(text + 3 * i, 4, i + 1 < count ? "%02x " : "%02x", bytes[i]);
	return text;
}

/* So many are shown beside a tag. */
static size_t tag_bytes(const struct magic *m)
{
	return m->pattern[0] == '?' ? m->length : strlen(m->tag);
}

static enum decode_status run(struct decoder *d, const void *bytes, size_t size, uint32_t channels, struct image *out,
			      struct decode_verdict *v)
{
	const char *instead = channels == 1 ? "PNG" : "JPEG or PNG";
	char hex[3 * HEX_BYTES + 1];

	d->channels = channels;
	d->pixel_bytes = d->codes ? MASK_PIXEL_BYTES : d->wide ? IMAGE_WIDE_BYTES : channels;
	v->reason = 0;
	v->message[0] = '\0';
	v->first[0] = '\0';
	v->dropped = 0;
	if (!size)
		return decode_bad(v, SHARD_MISS_EMPTY, "is empty (0 bytes)");
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		const struct magic *m = &magics[i];

		if (!starts_with(bytes, size, m))
			continue;
		if (m->run && d->wide && m->narrow)
			return decode_not_wide(v, m->name, m->narrow);
		if (m->run && !(m->images_only && channels == 1))
			return m->run(d, bytes, size, out, v);
		if (m->run)
			return decode_bad(v, SHARD_MISS_UNSUPPORTED,
					  "starts with %s (%s): a mask is not read from %s %s, "
					  "convert it to PNG",
					  first_bytes(bytes, tag_bytes(m), hex), m->tag, m->name[0] == 'A' ? "an" : "a",
					  m->name);
		if (m->tag)
			return decode_bad(v, SHARD_MISS_UNSUPPORTED,
					  "starts with %s (%s): %s is not supported, convert it to %s",
					  first_bytes(bytes, tag_bytes(m), hex), m->tag, m->name, instead);
		return decode_bad(v, SHARD_MISS_UNSUPPORTED, "starts with %s: %s is not supported, convert it to %s",
				  first_bytes(bytes, m->length, hex), m->name, instead);
	}
	if (size >= 4 && !memcmp(bytes, "\0\5\26\7", 4))
		return decode_bad(v, SHARD_MISS_NOT_AN_IMAGE,
				  "is AppleDouble: what macOS keeps beside a file, not an image; remove all such "
				  "files: find SRC -name '._*' -delete");
	return decode_bad(v, SHARD_MISS_NOT_AN_IMAGE, "starts with %s: not %s",
			  first_bytes(bytes, size < HEX_BYTES ? size : HEX_BYTES, hex),
			  channels == 1 ? "a mask (PNG, BMP, PGM)"
					: "an image (JPEG, PNG, WebP, GIF, TIFF, AVIF, BMP, PPM)");
}

#define BESIDE_BYTES ((size_t)16 << 20) /* more than a decoder holds beside the file and what it claims */

/* Would the system grant all that the image at hand needs? */
static bool has_memory(const struct decoder *d, size_t file_bytes)
{
	void *volatile probe = malloc((size_t)d->claimed_bytes + file_bytes + BESIDE_BYTES);

	free(probe);
	return probe;
}

/*
 * Libraries tell of memory that ran out as of a damaged file; then malloc() has left ENOMEM.  It
 * leaves that as well where it found memory in a second place, and where a damaged file asked for
 * more than an image of its size needs.  So the file is damaged if it is so twice, and there is
 * memory each time.
 */
static enum decode_status run_twice(struct decoder *d, const void *bytes, size_t size, uint32_t channels,
				    struct image *out, struct decode_verdict *v)
{
	enum decode_status rc = DECODE_OK;

	for (int i = 0; i < 2; i++) {
		d->sink_begun = false;
		d->claimed_bytes = 0;
		errno = 0;
		rc = run(d, bytes, size, channels, out, v);
		if (rc != DECODE_BAD_INPUT || errno != ENOMEM)
			return rc;
		if (!has_memory(d, size))
			return decode_no_memory(v);
	}
	return rc;
}

static enum decode_status stream(struct decoder *d, const struct mask_codes *codes, const void *bytes, size_t size,
				 uint32_t channels, bool wide, const struct image_sink *sink, struct decode_verdict *v)
{
	struct image image;
	enum decode_status rc;

	d->codes = codes;
	d->wide = wide;
	d->sink = sink;
	rc = run_twice(d, bytes, size, channels, &image, v);
	if (rc == DECODE_OK && !d->sink_begun && /* it was decoded as a whole */
	    !image_give(sink, &(struct image_size){.width = image.width, .height = image.height, .scale = 1},
			image.pixels, decode_given_bytes(d)))
		return decode_no_memory(v);
	if (d->pixels.capacity_bytes > KEPT_BYTES)
		scratch_free(&d->pixels);
	return rc;
}

enum decode_status decoder_stream(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				  struct decode_verdict *v)
{
	return stream(d, NULL, bytes, size, IMAGE_CHANNELS, false, sink, v);
}

enum decode_status decoder_stream_wide(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				       struct decode_verdict *v)
{
	return stream(d, NULL, bytes, size, IMAGE_CHANNELS, true, sink, v);
}

enum decode_status decoder_mask(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				struct decode_verdict *v)
{
	return stream(d, NULL, bytes, size, 1, false, sink, v);
}

enum decode_status decoder_coded_mask(struct decoder *d, const struct mask_codes *codes, const void *bytes, size_t size,
				      const struct image_sink *sink, struct decode_verdict *v)
{
	return stream(d, codes, bytes, size, 1, false, sink, v);
}
