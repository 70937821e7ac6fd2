/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_ppm.c - PGM and PPM in their binary forms, P5 and P6
 *
 * A sample is scaled by the largest that the file names, rounded as in Pillow: to the nearest, a half to the even one.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/shardpack/decode_private.h"

struct cursor {
	const uint8_t *at, *end;
};

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/* A number behind blanks and comments; what follows it must be a blank, which is taken too. */
static bool take_number(struct cursor *c, uint64_t *out)
{
	const uint8_t *start;

	while (c->at < c->end && (is_blank(*c->at) || *c->at == '#'))
		if (*c->at++ == '#')
			while (c->at < c->end && *c->at != '\n' && *c->at != '\r')
				c->at++;
	*out = 0;
	for (start = c->at; c->at < c->end && *c->at >= '0' && *c->at <= '9' && c->at - start < 10; c->at++)
		*out = *out * 10 + (uint64_t)(*c->at - '0');
	return c->at > start && c->at < c->end && is_blank(*c->at++);
}

enum decode_status ppm_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out, struct decode_verdict *v)
{
	struct cursor c = {bytes + 2, bytes + size};
	bool gray = bytes[1] == '5';
	uint64_t width, height, most, row_bytes;
	uint8_t scaled[256];
	enum decode_status rc;

	if (!take_number(&c, &width) || !take_number(&c, &height) || !take_number(&c, &most) || !width || !height || !most)
		return decode_bad(v, SHARD_MISS_DECODE, "%s has a head without width, height and largest value", gray ? "PGM" : "PPM");
	if (most > 255)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED, "%s has samples up to %" PRIu64 ": convert it to 8 bits", gray ? "PGM" : "PPM", most);
	rc = decode_check_size(d, width, height, v);
	if (rc != DECODE_OK)
		return rc;
	row_bytes = width * (gray ? 1 : IMAGE_CHANNELS);
	if ((uint64_t)(c.end - c.at) / row_bytes < height)
		return decode_bad(v, SHARD_MISS_TRUNCATED, "%s data ends early: has %td bytes of %" PRIu64, gray ? "PGM" : "PPM", c.end - c.at,
				  row_bytes * height);
	rc = decode_begin(d, width, height, out, v);
	if (rc != DECODE_OK)
		return rc;
	for (unsigned i = 0; i < 256; i++)
		scaled[i] = i >= most ? 255 : (uint8_t)rint((double)i / (double)most * 255);
	for (uint32_t y = 0; y < out->height; y++, c.at += row_bytes) {
		uint8_t *row = decode_row(d, out, y), *to = gray ? decode_narrow_row(row, out->width) : row;

		for (uint64_t i = 0; i < row_bytes; i++)
			to[i] = scaled[c.at[i]];
		if (gray)
			decode_spread_gray(row, out->width);
	}
	return DECODE_OK;
}
