/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif.h - which way up an image file says it is
 *
 * The orientation of Exif 2.3: 1 upright, 2 mirrored, 3 upside down, 4 mirrored upside down, 5 to 8
 * lying on a side.  Looked for where Pillow's getexif() does: in the first Exif segment of a JPEG,
 * the eXIf chunk of a PNG, the EXIF chunk of a WebP.  Not looked for in XMP, nor in the text chunks
 * that old programs wrote into PNG.
 */
#ifndef SHARD_FORMAT_EXIF_H
#define SHARD_FORMAT_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* 1 to 8 if the file says so, 0 if it says nothing, something else, or cannot be read. */
uint32_t exif_stated(const uint8_t *bytes, size_t size);

/*
 * 1 to 8; 1 also if the file says nothing, something else, or cannot be read.  Never a reason to
 * refuse it.
 */
uint32_t exif_orientation(const uint8_t *bytes, size_t size);

#endif
