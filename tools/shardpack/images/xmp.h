/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xmp.h - the orientation in XMP, by the rule of Pillow
 *
 * Pillow parses no XML here.  It searches for tiff:Orientation="N" or tiff:Orientation>N, where N
 * is a digit, and the first one counts.
 */
#ifndef SHARD_FORMAT_XMP_H
#define SHARD_FORMAT_XMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xmp {
	bool is_empty;	      /* no bytes at all */
	uint32_t orientation; /* 1 to 8, or 0: none, or another digit */
};

struct xmp xmp_read(const uint8_t *bytes, size_t size);

#endif
