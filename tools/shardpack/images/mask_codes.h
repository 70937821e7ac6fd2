/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_codes.h - what the pixels of a mask mean that is no mask of single bytes
 *
 * With a map, the class of each colour or of each value.  Without one, the values of gray, and of
 * colours R + 256 G + 65536 B, as COCO's panoptic masks have them.  Opaque alpha is dropped; any
 * other is refused, since it could mean "not labelled".
 */
#ifndef SHARD_DECODE_MASK_CODES_H
#define SHARD_DECODE_MASK_CODES_H

#include "tools/shardpack/images/decode_verdict.h"
#include "tools/shardpack/images/mask_map.h"

#define MASK_PIXEL_BYTES 4 /* the most that a file has for a pixel, and a record too */

struct mask_codes {
	uint32_t sample_bytes;	    /* of a record: 1, 2 or 4 */
	const struct mask_map *map; /* or NULL */
};

/* The pixels of a file. */
struct mask_pixels {
	const char *format; /* its name, for messages */
	uint32_t channels;  /* 1 to 4; the last one of 2 and 4 is alpha */
	bool wide;	    /* 16 bits, the high byte first; of one channel only */
	/* What the values of one channel stand for, RGB each; NULL if they are no indices. */
	const uint8_t *palette;
	uint32_t palette_count;
};

static inline uint32_t mask_pixel_bytes(const struct mask_pixels *p)
{
	return p->channels * (p->wide ? 2 : 1);
}

/* The largest sample of a record. */
static inline uint32_t mask_codes_most(const struct mask_codes *c)
{
	return (uint32_t)((UINT64_C(1) << 8 * c->sample_bytes) - 1);
}

/* Can pixels of this kind be what is asked for? */
enum decode_status mask_codes_check(const struct mask_codes *c, const struct mask_pixels *p, struct decode_verdict *v);

/*
 * Row y: `width` pixels of the file to samples at `to`.  The row may end where `to` + width *
 * MASK_PIXEL_BYTES ends: a sample is written when its pixel has been read.
 */
enum decode_status mask_codes_row(const struct mask_codes *c, const struct mask_pixels *p, const uint8_t *row,
				  uint32_t width, uint32_t y, uint8_t *to, struct decode_verdict *v);

#endif
