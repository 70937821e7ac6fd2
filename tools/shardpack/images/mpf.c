/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpf.c - how many pictures a JPEG file holds, by CIPA DC-007 (Multi-Picture Format)
 *
 * The index is a TIFF of tags.  Its offsets count from its own head.
 */
#include "tools/shardpack/images/images.h"

#include <stdbool.h>

#include "libshard/base/bytes.h"

#define MPF	     "MPF\0"
#define TAG_COUNT    0xb001
#define TAG_ENTRIES  0xb002
#define HEAD_BYTES   8
#define TAG_BYTES    12
#define ENTRY_BYTES  16
#define KIND(attr)   ((attr) >> 16 & 0xff) /* of an entry: 1 thumbnail, 2 several views, 3 the main one, 0 other */
#define IS_THUMBNAIL 1

struct index {
	const uint8_t *at; /* its head */
	size_t bytes;
	bool big;
};

static uint32_t read32(const struct index *x, size_t at)
{
	uint32_t value = load32(x->at + at);

	return x->big ? __builtin_bswap32(value) : value;
}

static uint32_t read16(const struct index *x, size_t at)
{
	uint32_t value = load16(x->at + at);

	return x->big ? (value >> 8 | value << 8) & 0xffff : value;
}

/* Where the entries begin, and how many are there; 0 if they are not all in the index. */
static uint64_t find_entries(const struct index *x, size_t *entries)
{
	size_t at = read32(x, 4), tags;
	uint64_t count = 0;

	*entries = 0;
	if (at > x->bytes - 2)
		return 0;
	for (tags = read16(x, at), at += 2; tags && x->bytes - at >= TAG_BYTES; tags--, at += TAG_BYTES) {
		if (read16(x, at) == TAG_COUNT)
			count = read32(x, at + 8);
		if (read16(x, at) == TAG_ENTRIES)
			*entries = read32(x, at + 8);
	}
	if (!*entries || *entries > x->bytes || (x->bytes - *entries) / ENTRY_BYTES < count)
		return 0;
	return count;
}

uint64_t mpf_pictures(const uint8_t *bytes, size_t size)
{
	struct jpeg_segment segment;
	size_t at = JPEG_SEGMENTS_AT, entry;
	uint64_t count, pictures = 1;
	struct index x;

	do {
		if (!jpeg_segment_next(bytes, size, &at, &segment))
			return 1;
	} while (!jpeg_segment_is(&segment, JPEG_APP2, MPF));
	x = (struct index){.at = segment.data + sizeof(MPF) - 1, .bytes = segment.bytes - (sizeof(MPF) - 1)};
	if (x.bytes < HEAD_BYTES)
		return 1;
	x.big = x.at[0] == 'M';
	for (count = find_entries(&x, &entry); count; count--, entry += ENTRY_BYTES) {
		size_t left = size - (size_t)(x.at - bytes), offset = read32(&x, entry + 8);

		/* the first one has offset 0: it is the picture that the file begins with */
		pictures += offset && offset < left && left - offset >= 2 && x.at[offset] == 0xff &&
			    x.at[offset + 1] == 0xd8 && KIND(read32(&x, entry)) != IS_THUMBNAIL;
	}
	return pictures;
}
