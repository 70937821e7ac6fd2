/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c - which decoder reads a file, and what all decoders share
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/shardpack/images/images.h"

/* ---- verdicts: the fault of an image, in a sentence ---- */

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

enum decode_status decode_first_of(const struct decoder *d, uint64_t count, const char *format, const char *things,
				   struct decode_verdict *v)
{
	uint32_t most = d->limit.max_frames;

	if (count > most)
		return decode_bad(v, SHARD_MISS_LIMIT,
				  "%s has %" PRIu64 " %s: more than the limit of %" PRIu32 "; --limit frames=%" PRIu64
				  " packs the first one",
				  format, count, things, most, count);
	if (count > 1)
		snprintf(v->first, sizeof(v->first), "%s has %" PRIu64 " %s: the first one is packed", format, count,
			 things);
	return DECODE_OK;
}

enum decode_status decode_not_wide(struct decode_verdict *v, const char *format, const char *what)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has %s, and 16 are asked for: pack it into a dataset of its own with "
			  "--dtype u8, or save it as PNG or TIFF with 16 bits",
			  format, what);
}

enum decode_status decode_bad_channels(struct decode_verdict *v, const char *format, int channel_count)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has %d channels: a mask has one, save it as gray or with a palette; or give map=FILE, "
			  "or dtype=u32 for ids R + 256 G + 65536 B",
			  format, channel_count);
}

enum decode_status decode_bad_value(struct decode_verdict *v, const char *format, uint32_t value, uint32_t x,
				    uint32_t y)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has the value %" PRIu32 " at column %" PRIu32 " of row %" PRIu32
			  ": a mask of u8 holds 0 to 255; dtype=u16 takes it",
			  format, value, x, y);
}

/* ---- colour profiles: do the numbers of this image mean what those of sRGB mean? ---- */

/*
 * Looks at the primaries alone (ICC.1:2010, 9.2.46).  Curves differ little between profiles of RGB,
 * and are written in too many ways.
 */

#define HEAD_BYTES   128
#define SPACE_AT     16
#define TAG_BYTES    12
#define XYZ_BYTES    20
#define NEAR	     1311 /* of 65536: 0.02 */
#define PRIMARIES    3
#define PRIMARY_AXES 3

/* A tag such as "rXYZ", whose value is three numbers; NULL if it is not there. */
static const uint8_t *find_xyz(const uint8_t *profile, size_t bytes, const char *name)
{
	uint32_t count = load32_big(profile + HEAD_BYTES);

	for (size_t at = HEAD_BYTES + 4; count && bytes - at >= TAG_BYTES; count--, at += TAG_BYTES) {
		uint32_t offset = load32_big(profile + at + 4);

		if (!memcmp(profile + at, name, 4))
			return offset < bytes && bytes - offset >= XYZ_BYTES ? profile + offset + 8 : NULL;
	}
	return NULL;
}

bool icc_is_like_srgb(const uint8_t *profile, size_t bytes)
{
	/* of sRGB seen under D50, in 1/65536 */
	static const struct {
		const char *name;
		int32_t xyz[PRIMARY_AXES];
	} srgb[PRIMARIES] = {
		{"rXYZ", {28580, 14581, 912}}, {"gXYZ", {25240, 46984, 6363}}, {"bXYZ", {9376, 3971, 46799}}};

	if (bytes < HEAD_BYTES + 4)
		return false;
	if (memcmp(profile + SPACE_AT, "RGB ", 4) != 0)
		return !memcmp(profile + SPACE_AT, "GRAY", 4) || !memcmp(profile + SPACE_AT, "CMYK", 4);
	for (int i = 0; i < PRIMARIES; i++) {
		const uint8_t *xyz = find_xyz(profile, bytes, srgb[i].name);

		for (int k = 0; k < PRIMARY_AXES; k++)
			if (!xyz || llabs((int64_t)(int32_t)load32_big(xyz + 4 * k) - srgb[i].xyz[k]) > NEAR)
				return false;
	}
	return true;
}

/* ---- for the decoders: limits, room for the pixels, rows ---- */

enum decode_status decode_check_size(struct decoder *d, uint64_t width, uint64_t height, struct decode_verdict *v)
{
	const struct decode_options *limit = &d->limit;
	char what_to_do[64] = "", why[160];

	if (limit->max_side < DECODE_SIDE_MAX && width <= DECODE_SIDE_MAX && height <= DECODE_SIDE_MAX)
		snprintf(what_to_do, sizeof(what_to_do), "; --limit side=%" PRIu64 " takes it",
			 width > height ? width : height);
	if (width > limit->max_side || height > limit->max_side)
		return decode_bad(v, SHARD_MISS_LIMIT,
				  "is %" PRIu64 " x %" PRIu64 " pixels: a side is longer than the limit of %" PRIu32
				  "%s",
				  width, height, limit->max_side, what_to_do);
	if (width * height > limit->max_pixels)
		return decode_bad(v, SHARD_MISS_LIMIT,
				  "is %" PRIu64 " x %" PRIu64 " = %" PRIu64 " pixels: more than the limit of %" PRIu64
				  "; --limit pixels=%" PRIu64 " takes it",
				  width, height, width * height, limit->max_pixels, width * height);
	if (d->sink->fits && !d->sink->fits(d->sink->context, (uint32_t)width, (uint32_t)height, why, sizeof(why)))
		return decode_bad(v, SHARD_MISS_LIMIT, "is %" PRIu64 " x %" PRIu64 " pixels: %s", width, height, why);
	return DECODE_OK;
}

void decode_claim(struct decoder *d, uint64_t bytes)
{
	if (bytes > d->claimed_bytes)
		d->claimed_bytes = bytes;
	if (d->limit.claim)
		d->limit.claim(d->limit.context, bytes);
}

enum decode_status decode_begin(struct decoder *d, uint64_t width, uint64_t height, struct decode_verdict *v)
{
	enum decode_status rc = decode_check_size(d, width, height, v);

	if (rc)
		return rc;
	decode_claim(d, width * height * d->pixel_bytes);
	if (!scratch_reserve(&d->pixels, (size_t)(width * height * d->pixel_bytes)))
		return decode_no_memory(v);
	d->width = (uint32_t)width;
	d->height = (uint32_t)height;
	return DECODE_OK;
}

uint8_t *decode_row(struct decoder *d, uint32_t y)
{
	return d->pixels.data + (size_t)y * d->width * d->pixel_bytes;
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

void decode_spread_wide(uint8_t *row, uint32_t width)
{
	const uint8_t *gray = decode_narrow_row(row, 2 * width);

	for (uint32_t i = 0; i < width; i++, gray += 2) {
		const uint8_t sample[2] = {gray[0], gray[1]};

		for (int c = 0; c < IMAGE_CHANNELS; c++, row += 2)
			memcpy(row, sample, 2);
	}
}

enum decode_status decode_codes(struct decoder *d, const struct mask_pixels *p, const uint8_t *row, uint32_t y,
				struct decode_verdict *v)
{
	size_t row_bytes = (size_t)d->width * d->codes->sample_bytes;

	return mask_codes_row(d->codes, p, row, d->width, y, d->pixels.data + y * row_bytes, v);
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

/* ---- which decoder reads a file: the first bytes decide, never a name ---- */

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

/* How many are shown beside a tag. */
static size_t tag_bytes(const struct image_magic *m)
{
	return m->pattern[0] == '?' ? m->length : strlen(m->tag);
}

/* The image is in d->pixels then, unless its rows went to the sink as they were made. */
static enum decode_status decode_once(struct decoder *d, const void *bytes, size_t size, struct decode_verdict *v)
{
	bool mask = d->channels == 1;
	const struct image_magic *magic = NULL;
	const char *instead = mask ? "PNG" : "JPEG or PNG";
	char hex[3 * HEX_BYTES + 1], list[IMAGE_LIST_CHARS];
	const struct image_format *f = image_format_in(bytes, size, &magic);

	d->pixel_bytes = d->codes ? MASK_PIXEL_BYTES : d->wide ? IMAGE_WIDE_BYTES : d->channels;
	v->reason = 0;
	v->message[0] = '\0';
	v->first[0] = '\0';
	v->dropped = 0;
	if (!size)
		return decode_bad(v, SHARD_MISS_EMPTY, "is empty (0 bytes)");
	if (f && (f->run || f->library)) {
		if (d->wide && f->bits)
			return decode_not_wide(v, f->name, f->bits);
		if ((!mask || !f->no_mask) && !f->run)
			return decode_bad(v, SHARD_MISS_UNSUPPORTED,
					  "is %s %s, and this shardpack was built without %s; install that and build "
					  "again, use the shardpack of libshard's wheel, or %s",
					  image_format_article(f), f->name, f->library, f->instead);
		if (!mask || !f->no_mask)
			return f->run(d, bytes, size, v);
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
			  first_bytes(bytes, size < HEX_BYTES ? size : HEX_BYTES, hex), mask ? "a mask" : "an image",
			  image_format_list(mask ? HOLDS_MASKS : HOLDS_IMAGES, list));
}

bool decode_has_memory(uint64_t bytes)
{
	void *volatile probe = malloc((size_t)bytes);

	free(probe);
	return probe;
}

#define BESIDE_BYTES ((size_t)16 << 20) /* more than a decoder holds beside the file and what it claims */

/*
 * Libraries report lack of memory as a damaged file; then malloc() has left ENOMEM.  It leaves that
 * as well where it found memory in a second place, and where a damaged file asked for more than an
 * image of its size needs.  So a file is damaged if two runs say so and there is memory after each.
 */
enum decode_status decoder_stream(struct decoder *d, enum decode_kind kind, const struct mask_codes *codes,
				  const void *bytes, size_t size, const struct image_sink *sink,
				  struct decode_verdict *v)
{
	struct image_size whole = {.scale = 1};
	enum decode_status rc = DECODE_OK;

	d->codes = codes;
	d->wide = kind == DECODE_WIDE;
	d->channels = kind == DECODE_MASK ? 1 : IMAGE_CHANNELS;
	d->sink = sink;
	for (int i = 0; i < 2; i++) {
		d->sink_begun = false;
		d->claimed_bytes = 0;
		errno = 0;
		rc = decode_once(d, bytes, size, v);
		if (rc != DECODE_BAD_INPUT || errno != ENOMEM)
			break;
		if (!decode_has_memory(d->claimed_bytes + size + BESIDE_BYTES)) {
			rc = decode_no_memory(v);
			break;
		}
	}
	whole.width = d->width;
	whole.height = d->height;
	if (rc == DECODE_OK && !d->sink_begun && !image_give(sink, &whole, d->pixels.data, decode_given_bytes(d)))
		rc = decode_no_memory(v);
	if (d->pixels.capacity_bytes > KEPT_BYTES)
		scratch_free(&d->pixels);
	return rc;
}
