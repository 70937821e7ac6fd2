/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_codes.c - what the pixels of a mask mean that is no mask of single bytes
 */
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <stdio.h>

#include "shard_pack.h"
#include "tools/shardpack/parse/integer.h"

static bool has_alpha(const struct mask_pixels *p)
{
	return p->channels == 2 || p->channels == 4;
}

static bool is_coloured(const struct mask_pixels *p)
{
	return p->channels > 2;
}

enum decode_status mask_codes_check(const struct mask_codes *c, const struct mask_pixels *p, struct decode_verdict *v)
{
	if (p->wide && p->channels > 1)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "%s has %" PRIu32 " channels of 16 bits: save the mask with 8 bits", p->format,
				  p->channels);
	if (!c->map && p->palette)
		return decode_bad(
			v, SHARD_MISS_UNSUPPORTED,
			"%s has a palette: for its indices leave dtype out, for the ids of its colours save it "
			"as RGB",
			p->format);
	if (c->map && c->map->of_colours && p->wide)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "%s is gray with 16 bits, and the map has colours: give lines 'VALUE CLASS'",
				  p->format);
	if (c->map && !c->map->of_colours && is_coloured(p))
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "%s has %" PRIu32 " channels, and the map has values: give lines 'R G B CLASS'",
				  p->format, p->channels);
	return DECODE_OK;
}

/* What a pixel is called in a message: "the colour 1 2 3", "the value 7". */
static const char *name_of(const struct mask_codes *c, const struct mask_pixels *p, uint32_t key, char out[64])
{
	if (is_coloured(p) || (c->map && c->map->of_colours))
		snprintf(out, 64, "colour %" PRIu32 " %" PRIu32 " %" PRIu32, key & 255, key >> 8 & 255, key >> 16);
	else
		snprintf(out, 64, "value %" PRIu32, key);
	return out;
}

static enum decode_status bad_code(const struct mask_codes *c, const struct mask_pixels *p, uint32_t key, uint32_t x,
				   uint32_t y, struct decode_verdict *v)
{
	char name[64];

	if (c->map)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "%s has the %s at column %" PRIu32 " of row %" PRIu32
				  ", which is not in the map; add a line for it, or '* CLASS' for all others",
				  p->format, name_of(c, p, key, name), x, y);
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has the %s at column %" PRIu32 " of row %" PRIu32 ", number %" PRIu32 ": u%" PRIu32
			  " holds 0 to %" PRIu32 "; give dtype=%s",
			  p->format, name_of(c, p, key, name), x, y, key, 8 * c->sample_bytes, mask_codes_most(c),
			  key > UINT16_MAX ? "u32" : "u16");
}

static enum decode_status bad_alpha(const struct mask_pixels *p, uint32_t alpha, uint32_t x, uint32_t y,
				    struct decode_verdict *v)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has the alpha %" PRIu32 " at column %" PRIu32 " of row %" PRIu32
			  ": only opaque pixels, 255, have a class; save it without alpha",
			  p->format, alpha, x, y);
}

/* The key of a pixel in the map; of an index beyond the palette UINT32_MAX. */
static uint32_t key_of(const struct mask_codes *c, const struct mask_pixels *p, const uint8_t *pixel)
{
	if (p->wide)
		return (uint32_t)pixel[0] << 8 | pixel[1];
	if (is_coloured(p))
		return mask_map_colour(pixel);
	if (!c->map || !c->map->of_colours)
		return pixel[0];
	if (!p->palette)
		return pixel[0] * UINT32_C(0x10101);
	return pixel[0] < p->palette_count ? mask_map_colour(p->palette + 3 * (size_t)pixel[0]) : UINT32_MAX;
}

enum decode_status mask_codes_row(const struct mask_codes *c, const struct mask_pixels *p, const uint8_t *row,
				  uint32_t width, uint32_t y, uint8_t *to, struct decode_verdict *v)
{
	uint32_t pixel_bytes = mask_pixel_bytes(p), most = mask_codes_most(c), last = 0, code = 0;
	bool known = false, alpha = has_alpha(p);

	for (uint32_t x = 0; x < width; x++, row += pixel_bytes, to += c->sample_bytes) {
		uint32_t key = key_of(c, p, row);

		if (alpha && row[pixel_bytes - 1] != 255)
			return bad_alpha(p, row[pixel_bytes - 1], x, y, v);
		if (!known || key != last) { /* most pixels are as their neighbour */
			if (key == UINT32_MAX)
				return decode_bad(
					v, SHARD_MISS_DAMAGED,
					"%s data is damaged: palette index %u, but the palette ends at %" PRIu32,
					p->format, row[0], p->palette_count - 1);
			code = key;
			if ((c->map && !mask_map_find(c->map, key, &code)) || code > most)
				return bad_code(c, p, key, x, y, v);
			last = key;
			known = true;
		}
		integer_store(to, c->sample_bytes, code);
	}
	return DECODE_OK;
}
