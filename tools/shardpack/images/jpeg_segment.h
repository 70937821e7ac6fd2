/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_segment.h - a walk over the segments of a JPEG file, up to its first scan
 *
 * No length is trusted.  What stands between segments is passed over, as the decoder does.
 */
#ifndef SHARD_FORMAT_JPEG_SEGMENT_H
#define SHARD_FORMAT_JPEG_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JPEG_SEGMENTS_AT 2 /* where a walk begins */
#define JPEG_APP1	 0xe1
#define JPEG_APP2	 0xe2

struct jpeg_segment {
	uint32_t marker;     /* its second byte */
	const uint8_t *data; /* borrowed from the file */
	size_t bytes;
};

/*
 * The segment at *at or behind it, which goes on to the next one.  False where no whole one is
 * left.
 */
static inline bool jpeg_segment_next(const uint8_t *file, size_t size, size_t *at, struct jpeg_segment *out)
{
	while (size >= 4 && *at <= size - 4) {
		uint32_t marker = file[*at + 1];
		size_t length = (size_t)file[*at + 2] << 8 | file[*at + 3];

		if (file[*at] != 0xff || marker == 0xff || marker == 0x00 || marker == 0x01 ||
		    (marker >= 0xd0 && marker <= 0xd8)) { /* junk, padding, or a marker without a length */
			++*at;
			continue;
		}
		if (marker == 0xda || marker == 0xd9 || length < 2 || length > size - *at - 2)
			break;
		*out = (struct jpeg_segment){marker, file + *at + 4, length - 2};
		*at += 2 + length;
		return true;
	}
	return false;
}

/* Does it begin with this?  A literal's NUL at the end does not count. */
#define jpeg_segment_is(segment, app, text)                                    \
	((segment)->marker == (app) && (segment)->bytes >= sizeof(text) - 1 && \
	 !memcmp((segment)->data, text, sizeof(text) - 1))

#endif
