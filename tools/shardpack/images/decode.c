/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c - which decoder
 *
 * Looks at the first bytes, never at a name.
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

#define HEX_BYTES 16 /* enough for every magic */

/* The first bytes as hex, for a message. */
static const char *first_bytes(const uint8_t *bytes, size_t count, char text[3 * HEX_BYTES + 1])
{
	for (size_t i = 0; i < count; i++)
		snprintf(text + 3 * i, 4, i + 1 < count ? "%02x " : "%02x", bytes[i]);
	return text;
}

/* So many are shown beside a tag. */
static size_t tag_bytes(const struct image_magic *m)
{
	return m->pattern[0] == '?' ? m->length : strlen(m->tag);
}

static enum decode_status run(struct decoder *d, const void *bytes, size_t size, uint32_t channels, struct image *out,
			      struct decode_verdict *v)
{
	const struct image_magic *magic = NULL;
	const char *instead = channels == 1 ? "PNG" : "JPEG or PNG";
	char hex[3 * HEX_BYTES + 1], list[IMAGE_LIST_CHARS];
	const struct image_format *f = image_format_in(bytes, size, &magic);

	d->channels = channels;
	d->pixel_bytes = d->codes ? MASK_PIXEL_BYTES : d->wide ? IMAGE_WIDE_BYTES : channels;
	v->reason = 0;
	v->message[0] = '\0';
	v->first[0] = '\0';
	v->dropped = 0;
	if (!size)
		return decode_bad(v, SHARD_MISS_EMPTY, "is empty (0 bytes)");
	if (f && f->run) {
		if (d->wide && f->bits)
			return decode_not_wide(v, f->name, f->bits);
		if (channels != 1 || !f->no_mask)
			return f->run(d, bytes, size, out, v);
		if (*f->no_mask)
			return decode_bad(v, SHARD_MISS_UNSUPPORTED, "%s", f->no_mask);
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "starts with %s (%s): a mask is not read from %s %s, convert it to PNG",
				  first_bytes(bytes, tag_bytes(magic), hex), magic->tag, image_format_article(f),
				  f->name);
	}
	if (f && magic->tag)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "starts with %s (%s): %s is not supported, convert it to %s",
				  first_bytes(bytes, tag_bytes(magic), hex), magic->tag, f->name, instead);
	if (f)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED, "starts with %s: %s is not supported, convert it to %s",
				  first_bytes(bytes, magic->length, hex), f->name, instead);
	if (size >= 4 && !memcmp(bytes, "\0\5\26\7", 4))
		return decode_bad(v, SHARD_MISS_NOT_AN_IMAGE,
				  "is AppleDouble: what macOS keeps beside a file, not an image; remove all such "
				  "files: find SRC -name '._*' -delete");
	return decode_bad(v, SHARD_MISS_NOT_AN_IMAGE, "starts with %s: not %s (%s)",
			  first_bytes(bytes, size < HEX_BYTES ? size : HEX_BYTES, hex),
			  channels == 1 ? "a mask" : "an image",
			  image_format_list(channels == 1 ? HOLDS_MASKS : HOLDS_IMAGES, list));
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
