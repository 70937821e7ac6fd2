/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_bmp.c - Windows bitmaps without compression: 1, 4 and 8 bits with a palette, 16, 24 and 32
 * bits
 *
 * Of a mask the indices of its palette are wanted, and it may be of any length: it is not looked
 * into.  Colours of 5 or 6 bits become 8 as in Pillow: value * 255 / most, rounded down.
 */
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "shard_inspect.h"

#define FILE_HEAD_BYTES 14
#define BI_RGB		0
#define BI_BITFIELDS	3

struct bmp {
	struct decoder *d;
	const uint8_t *bytes;
	size_t size;
	uint32_t width, height, bits, compression, palette_at, palette_count, palette_item, pixels_at;
	uint32_t mask[3]; /* red, green, blue; of 16 and 32 bits */
	bool top_down;
};

/* Sizes and places from the head, of whatever age it is. */
static enum decode_status read_head(struct bmp *b, struct decode_verdict *v)
{
	uint32_t head_bytes = b->size >= FILE_HEAD_BYTES + 4 ? load32(b->bytes + FILE_HEAD_BYTES) : 0;
	const uint8_t *head = b->bytes + FILE_HEAD_BYTES;
	int32_t height;

	if (head_bytes != 12 && (head_bytes < 40 || head_bytes > 124))
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "BMP has a head of %" PRIu32 " bytes; 12 and 40 to 124 are known", head_bytes);
	if (b->size < FILE_HEAD_BYTES + (size_t)head_bytes)
		return decode_bad(v, SHARD_MISS_TRUNCATED, "BMP data ends early: within its head");
	b->pixels_at = load32(b->bytes + 10);
	if (head_bytes == 12) {
		b->width = load16(head + 4);
		height = (int32_t)load16(head + 6);
		b->bits = load16(head + 10);
	} else {
		b->width = load32(head + 4);
		height = (int32_t)load32(head + 8);
		b->bits = load16(head + 14);
		b->compression = load32(head + 16);
		b->palette_count = load32(head + 32);
	}
	b->top_down = height < 0;
	b->height = height < 0 ? 0u - (uint32_t)height : (uint32_t)height;
	b->palette_item = head_bytes == 12 ? 3 : 4;
	b->palette_at = FILE_HEAD_BYTES + head_bytes;
	if (!b->width || b->width > INT32_MAX || !b->height || b->height > INT32_MAX)
		return decode_bad(v, SHARD_MISS_DECODE, "BMP has no pixels");
	return DECODE_OK;
}

/*
 * Which bits are which colour: the usual ones, or the ones that stand behind the head of 40 bytes, or
 * in a longer one.
 */
static enum decode_status read_masks(struct bmp *b, struct decode_verdict *v)
{
	static const uint32_t usual16[] = {0x7c00, 0x03e0, 0x001f}, usual32[] = {0xff0000, 0xff00, 0xff},
			      green6[] = {0xf800, 0x07e0, 0x001f};

	memcpy(b->mask, b->bits == 16 ? usual16 : usual32, sizeof(b->mask));
	if (b->compression == BI_RGB)
		return DECODE_OK;
	if (b->size < FILE_HEAD_BYTES + 40 + 12)
		return decode_bad(v, SHARD_MISS_TRUNCATED, "BMP data ends early: within its head");
	for (int i = 0; i < 3; i++)
		b->mask[i] = load32(b->bytes + FILE_HEAD_BYTES + 40 + 4 * i);
	/* a head of 56 bytes and more has a fourth mask, of alpha */
	if (b->bits == 32 && b->palette_at >= FILE_HEAD_BYTES + 56 && load32(b->bytes + FILE_HEAD_BYTES + 52))
		decode_drop(v, DROPPED_ALPHA);
	if (b->bits == 16 && (!memcmp(b->mask, usual16, sizeof(usual16)) || !memcmp(b->mask, green6, sizeof(green6))))
		return DECODE_OK;
	for (int i = 0; i < 3 && b->bits == 32; i++)
		if (b->mask[i] != 0xff && b->mask[i] != 0xff00 && b->mask[i] != 0xff0000 && b->mask[i] != 0xff000000)
			break;
		else if (i == 2 && b->mask[0] != b->mask[1] && b->mask[1] != b->mask[2] && b->mask[0] != b->mask[2])
			return DECODE_OK;
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "BMP of %" PRIu32 " bits with masks %08" PRIx32 " %08" PRIx32 " %08" PRIx32
			  ": convert it to 24 bits",
			  b->bits, b->mask[0], b->mask[1], b->mask[2]);
}

static enum decode_status read_format(struct bmp *b, struct decode_verdict *v)
{
	bool wide = b->bits == 16 || b->bits == 32;

	if (b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 24 && !wide)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "BMP of %" PRIu32 " bits; 1, 4, 8, 16, 24 and 32 are known", b->bits);
	if (b->compression != BI_RGB && !(wide && b->compression == BI_BITFIELDS))
		return decode_bad(v, SHARD_MISS_UNSUPPORTED, "BMP with compression %" PRIu32 ": save it without",
				  b->compression);
	if (b->d->channels == 1 && b->bits > 8 && !b->d->codes)
		return decode_bad_channels(v, "BMP", IMAGE_CHANNELS);
	if (wide)
		return read_masks(b, v);
	if (b->bits == 24)
		return DECODE_OK;
	if (!b->palette_count)
		b->palette_count = UINT32_C(1) << b->bits;
	if (b->palette_count > UINT32_C(1) << b->bits)
		return decode_bad(v, SHARD_MISS_DECODE, "BMP of %" PRIu32 " bits with a palette of %" PRIu32, b->bits,
				  b->palette_count);
	if (b->size < b->palette_at || (b->size - b->palette_at) / b->palette_item < b->palette_count)
		return decode_bad(v, SHARD_MISS_TRUNCATED, "BMP data ends early: within its palette");
	return DECODE_OK;
}

/* The value of pixel x, of at most 8 bits. */
static uint32_t value_at(const struct bmp *b, const uint8_t *in, size_t x)
{
	return in[x * b->bits / 8] >> (8 - b->bits - x * b->bits % 8) & ((1u << b->bits) - 1);
}

static void read_values(const struct bmp *b, const uint8_t *in, uint8_t *out)
{
	for (uint32_t x = 0; x < b->width; x++)
		out[x] = (uint8_t)value_at(b, in, x);
}

/* One row that is there in full.  The greatest index of a palette that it has. */
static uint32_t read_row(const struct bmp *b, const uint8_t *in, uint8_t *out)
{
	uint32_t largest = 0;

	for (uint32_t x = 0; x < b->width; x++, out += IMAGE_CHANNELS) {
		uint32_t value;

		if (b->bits == 24) {
			out[0] = in[3 * (size_t)x + 2];
			out[1] = in[3 * (size_t)x + 1];
			out[2] = in[3 * (size_t)x];
		} else if (b->bits > 8) {
			value = b->bits == 16 ? load16(in + 2 * (size_t)x) : load32(in + 4 * (size_t)x);
			for (int i = 0; i < 3; i++) {
				uint32_t lowest = b->mask[i] & (0u - b->mask[i]);

				out[i] = (uint8_t)((value & b->mask[i]) / lowest * 255 / (b->mask[i] / lowest));
			}
		} else {
			value = value_at(b, in, x);
			largest = value > largest ? value : largest;
			if (value >= b->palette_count)
				continue;
			for (int i = 0; i < 3; i++)
				out[i] = b->bytes[b->palette_at + (size_t)value * b->palette_item + 2 - i];
		}
	}
	return largest;
}

/* A row of a mask of codes: by its colours, as an image's, or by its indices. */
static enum decode_status read_codes(const struct bmp *b, const uint8_t *in, uint32_t y, uint32_t *largest,
				     struct decode_verdict *v)
{
	bool colours = b->bits > 8 || (b->d->codes->map && b->d->codes->map->of_colours);
	struct mask_pixels kind = {.format = "BMP", .channels = colours ? IMAGE_CHANNELS : 1};
	enum decode_status rc;

	kind.palette = colours ? NULL : b->bytes;
	rc = mask_codes_check(b->d->codes, &kind, v);
	if (rc)
		return rc;
	if (!scratch_reserve(&b->d->line, (size_t)b->width * IMAGE_CHANNELS))
		return decode_no_memory(v);
	if (colours)
		*largest = read_row(b, in, b->d->line.data);
	else
		read_values(b, in, b->d->line.data);
	if (b->bits <= 8 && *largest >= b->palette_count)
		return DECODE_OK; /* some have no colour: bmp_run() says so */
	return decode_codes(b->d, &kind, b->d->line.data, y, v);
}

enum decode_status bmp_run(struct decoder *d, const uint8_t *bytes, size_t size, struct decode_verdict *v)
{
	struct bmp b = {.d = d, .bytes = bytes, .size = size};
	enum decode_status rc = read_head(&b, v);
	uint64_t row_bytes;

	if (rc == DECODE_OK)
		rc = decode_check_size(d, b.width, b.height, v);
	if (rc == DECODE_OK)
		rc = read_format(&b, v);
	if (rc != DECODE_OK)
		return rc;
	if (b.pixels_at < b.palette_at)
		return decode_bad(v, SHARD_MISS_DAMAGED,
				  "BMP data is damaged: its pixels begin at %" PRIu32 ", within the head of %" PRIu32
				  " bytes",
				  b.pixels_at, b.palette_at);
	row_bytes = ((uint64_t)b.width * b.bits + 31) / 32 * 4;
	if (b.pixels_at > size || (size - b.pixels_at) / row_bytes < b.height)
		return decode_bad(v, SHARD_MISS_TRUNCATED,
				  "BMP data ends early: has %zu bytes, and %" PRIu32 " rows of %" PRIu64
				  " begin at %" PRIu32,
				  size, b.height, row_bytes, b.pixels_at);
	rc = decode_begin(d, b.width, b.height, v);
	for (uint32_t y = 0; rc == DECODE_OK && y < b.height; y++) {
		uint32_t to = b.top_down ? y : b.height - 1 - y;
		const uint8_t *in = bytes + b.pixels_at + y * row_bytes;
		uint32_t largest = 0;

		if (d->codes)
			rc = read_codes(&b, in, to, &largest, v);
		else if (d->channels == 1)
			read_values(&b, in, decode_row(d, to));
		else
			largest = read_row(&b, in, decode_row(d, to));
		if (rc == DECODE_OK && b.palette_count && b.bits <= 8 && largest >= b.palette_count)
			rc = decode_bad(v, SHARD_MISS_DAMAGED,
					"BMP data is damaged: palette index %" PRIu32
					", but the palette ends at %" PRIu32,
					largest, b.palette_count - 1);
	}
	return rc;
}
