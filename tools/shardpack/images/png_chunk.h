/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_chunk.h - a walk over the chunks of a PNG file
 *
 * No length is trusted.  Sums are not checked, and the walk may end at damage: the decoder decides
 * that.
 */
#ifndef SHARD_FORMAT_PNG_CHUNK_H
#define SHARD_FORMAT_PNG_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PNG_MAGIC_BYTES 8  /* where a walk begins */
#define PNG_FRAME_BYTES 12 /* of a chunk: length, name, sum */

struct png_chunk {
	const uint8_t *name; /* 4 letters */
	const uint8_t *data; /* borrowed from the file */
	size_t bytes;
};

/*
 * The chunk at *at, which goes on to the next one.  False at the end of the file, or where no whole
 * chunk is left.
 */
static inline bool png_chunk_next(const uint8_t *file, size_t size, size_t *at, struct png_chunk *out)
{
	const uint8_t *head = file + *at;

	if (size - *at < PNG_FRAME_BYTES)
		return false;
	out->bytes = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	if (out->bytes > size - *at - PNG_FRAME_BYTES)
		return false;
	out->name = head + 4;
	out->data = head + 8;
	*at += PNG_FRAME_BYTES + out->bytes;
	return true;
}

static inline bool png_chunk_is(const struct png_chunk *chunk, const char *name)
{
	return !memcmp(chunk->name, name, 4);
}

#endif
