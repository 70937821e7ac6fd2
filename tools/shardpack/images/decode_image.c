/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_image.c - the common part of all formats' decoders: limits, room for the pixels, rows
 */
#include "shard_pack.h"
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

void decode_spread_wide(uint8_t *row, uint32_t width)
{
	const uint8_t *gray = decode_narrow_row(row, 2 * width);

	for (uint32_t i = 0; i < width; i++, gray += 2) {
		const uint8_t sample[2] = {gray[0], gray[1]};

		for (int c = 0; c < IMAGE_CHANNELS; c++, row += 2)
			memcpy(row, sample, 2);
	}
}

enum decode_status decode_codes(struct decoder *d, const struct image *out, const struct mask_pixels *p,
				const uint8_t *row, uint32_t y, struct decode_verdict *v)
{
	size_t row_bytes = (size_t)out->width * d->codes->sample_bytes;

	return mask_codes_row(d->codes, p, row, out->width, y, d->pixels.data + y * row_bytes, v);
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
