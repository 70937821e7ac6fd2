/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif_tiff.h - the orientation in EXIF data, by the rules of Pillow
 *
 * EXIF data is a TIFF structure.  Only its first directory is looked at.  An entry that Pillow does
 * not read is passed over, and damage ends the directory where it ends it for Pillow.
 */
#ifndef SHARD_FORMAT_EXIF_TIFF_H
#define SHARD_FORMAT_EXIF_TIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exif_said {
	EXIF_SAYS_NOTHING, /* no entry for an orientation */
	EXIF_SAYS,	   /* an entry, whatever its value */
	EXIF_UNREADABLE	   /* no TIFF structure: Pillow raises, or takes the image as it lies */
};

struct exif_tiff {
	enum exif_said said;
	uint32_t orientation; /* EXIF_SAYS: 1 to 8, or 0 for any other value */
	const uint8_t *xmp;   /* the values of its entry, which only an image file has; or NULL */
	size_t xmp_bytes;
};

/*
 * `prefixes`: so many times "Exif\0\0" may stand before the structure.  `first`: of two entries the
 * first one counts, as from Pillow 13 on, not the last one.
 */
struct exif_tiff exif_tiff(const uint8_t *bytes, size_t size, unsigned prefixes, bool first);

#endif
