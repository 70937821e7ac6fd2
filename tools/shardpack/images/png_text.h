/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_text.h - a text chunk of a PNG file: its keyword and its text, inflated
 *
 * The kinds are tEXt, zTXt and iTXt.  What is damaged comes out as it does in Pillow.
 */
#ifndef SHARD_FORMAT_PNG_TEXT_H
#define SHARD_FORMAT_PNG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/shardpack/images/png_chunk.h"

/* Pillow refuses a file in which a compressed text has more; here that chunk is passed over. */
#define PNG_TEXT_MAX_BYTES (UINT32_C(1) << 20)
/* The same for all of them together: behind so many, no other one is inflated. */
#define PNG_TEXT_ALL_BYTES (64 * (uint64_t)PNG_TEXT_MAX_BYTES)

enum png_text_status { PNG_TEXT, PNG_TEXT_NONE, PNG_TEXT_NO_MEMORY };

struct png_text {
	const uint8_t *bytes; /* borrowed from the file, or `owned` */
	size_t count;
	bool is_characters; /* not an iTXt that is no UTF-8, which Pillow takes for XMP alone */
	uint8_t *owned;
	uint32_t inflated_bytes; /* whatever became of them */
};

/* Is this a chunk with text of the keyword? */
bool png_text_is(const struct png_chunk *chunk, const char *keyword);

/*
 * Its text.  PNG_TEXT_NONE: Pillow does not see the chunk, or refuses the file for it.  If it is
 * PNG_TEXT, free `owned`.
 */
enum png_text_status png_text_read(const struct png_chunk *chunk, struct png_text *out);

#endif
