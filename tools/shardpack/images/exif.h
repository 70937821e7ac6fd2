/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif.h - which way up an image file says it is
 *
 * The orientation of Exif 2.3: 1 upright, 2 mirrored, 3 upside down, 4 mirrored upside down, 5 to 8
 * lying on a side.  It is found where Pillow's getexif() finds it.  First comes EXIF data: the Exif
 * segments of a JPEG; the eXIf chunk of a PNG, or its text "exif" or "Raw profile type exif"; the
 * EXIF chunk of a WebP; the tags of a TIFF.  If that has no entry for it, XMP follows: the last
 * such segment of a JPEG, the text "XML:com.adobe.xmp" of a PNG, the XMP chunk of a WebP, the tag
 * of a TIFF.  Extended XMP, which a JPEG holds in segments of another name, is not looked at.
 */
#ifndef SHARD_FORMAT_EXIF_H
#define SHARD_FORMAT_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where Pillows differ on damaged EXIF data, the recipe's line `pixels` chooses between them. */
enum exif_rules { EXIF_RULES_PILLOW_12, EXIF_RULES_PILLOW_13 };

/*
 * Sets *stated: 1 to 8 if the file says so, 0 if it says nothing, something else, or what cannot be
 * read, which is never a reason to refuse it.  False without memory.
 */
bool exif_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated);

/*
 * The same for an AVIF.  What its boxes say, 1 to 8, is what Pillow writes into its EXIF data.  So
 * XMP counts only if the boxes say 1, and the EXIF data has no entry.
 */
uint32_t exif_stated_beside(uint32_t boxes, const uint8_t *exif, size_t exif_bytes, const uint8_t *xmp,
			    size_t xmp_bytes, enum exif_rules rules);

/* Does it begin as a TIFF?  Pillow turns these when it reads them, asked to or not. */
bool exif_is_tiff(const uint8_t *bytes, size_t size);

#endif
