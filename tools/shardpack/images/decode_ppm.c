/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_ppm.c - PGM and PPM in their binary forms, P5 and P6
 *
 * Of a PGM that is a mask samples of 16 bits are read as well, if they are not to be scaled and
 * none is above 255, or its values are codes; a PPM is a mask if its colours are.  A sample is
 * scaled by the largest that the file names, rounded as in Pillow: to the nearest, a half to the
 * even one.
 */
#include "shard_inspect.h"
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

struct ppm {
	struct cursor rest;
	uint64_t width, height, most, row_bytes;
	bool gray;
	const char *name;
};

static enum decode_status read_head(struct decoder *d, struct ppm *p, struct decode_verdict *v)
{
	bool mask = d->channels == 1;
	enum decode_status rc;

	if (!take_number(&p->rest, &p->width) || !take_number(&p->rest, &p->height) ||
	    !take_number(&p->rest, &p->most) || !p->width || !p->height || !p->most)
		return decode_bad(v, SHARD_MISS_DECODE, "%s has a head without width, height and largest value",
				  p->name);
	if (mask && !p->gray && !d->codes)
		return decode_bad_channels(v, p->name, IMAGE_CHANNELS);
	if (mask && !p->gray && p->most != 255)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "%s has samples up to %" PRIu64 ": the colours of a mask go up to 255", p->name,
				  p->most);
	if (p->most > 255 && !(mask && p->most == 65535))
		return decode_bad(v, SHARD_MISS_UNSUPPORTED, "%s has samples up to %" PRIu64 ": convert it to 8 bits",
				  p->name, p->most);
	rc = decode_check_size(d, p->width, p->height, v);
	if (rc != DECODE_OK)
		return rc;
	p->row_bytes = p->width * (p->gray ? 1 : IMAGE_CHANNELS) * (p->most > 255 ? 2 : 1);
	if ((uint64_t)(p->rest.end - p->rest.at) / p->row_bytes < p->height)
		return decode_bad(v, SHARD_MISS_TRUNCATED, "%s data ends early: has %td bytes of %" PRIu64, p->name,
				  p->rest.end - p->rest.at, p->row_bytes * p->height);
	return DECODE_OK;
}

/* One row of a mask of codes; `scaled` as the samples of an image. */
static enum decode_status read_codes(struct decoder *d, const struct ppm *p, uint32_t y, const uint8_t *scaled,
				     struct decode_verdict *v)
{
	const struct mask_pixels kind = {
		.format = p->name, .channels = p->gray ? 1 : IMAGE_CHANNELS, .wide = p->most > 255};
	enum decode_status rc = mask_codes_check(d->codes, &kind, v);

	if (rc != DECODE_OK || kind.wide || !p->gray)
		return rc ? rc : decode_codes(d, &kind, p->rest.at, y, v);
	if (!scratch_reserve(&d->line, (size_t)p->row_bytes))
		return decode_no_memory(v);
	for (uint64_t i = 0; i < p->row_bytes; i++)
		d->line.data[i] = scaled[p->rest.at[i]];
	return decode_codes(d, &kind, d->line.data, y, v);
}

enum decode_status ppm_run(struct decoder *d, const uint8_t *bytes, size_t size, struct decode_verdict *v)
{
	bool gray = bytes[1] == '5', spread = gray && d->channels == IMAGE_CHANNELS;
	struct ppm p = {.rest = {bytes + 2, bytes + size}, .gray = gray, .name = gray ? "PGM" : "PPM"};
	uint32_t bad, bad_x;
	uint8_t scaled[256];
	enum decode_status rc = read_head(d, &p, v);

	if (rc == DECODE_OK)
		rc = decode_begin(d, p.width, p.height, v);
	if (rc != DECODE_OK)
		return rc;
	for (unsigned i = 0; i < 256; i++)
		scaled[i] = i >= p.most ? 255 : (uint8_t)rint((double)i / (double)p.most * 255);
	for (uint32_t y = 0; y < d->height; y++, p.rest.at += p.row_bytes) {
		uint8_t *row = decode_row(d, y), *to = spread ? decode_narrow_row(row, d->width) : row;

		if (d->codes) {
			rc = read_codes(d, &p, y, scaled, v);
			if (rc)
				return rc;
			continue;
		}
		if (p.most > 255) {
			bad = decode_16_to_8(p.rest.at, d->width, row, &bad_x);
			if (bad)
				return decode_bad_value(v, p.name, bad, bad_x, y);
			continue;
		}
		for (uint64_t i = 0; i < p.row_bytes; i++)
			to[i] = scaled[p.rest.at[i]];
		if (spread)
			decode_spread_gray(row, d->width);
	}
	return DECODE_OK;
}
