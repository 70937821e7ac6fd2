/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_optional.h - GIF, TIFF and AVIF to RGB, each of which a build may lack
 *
 * Of several frames or pages it is the first one.  `bytes` begin with the format's magic.  Each
 * version is NULL in a build without that library, whose decoder then says so.
 */
#ifndef SHARD_DECODE_DECODE_OPTIONAL_H
#define SHARD_DECODE_DECODE_OPTIONAL_H

#include <stdbool.h>

#include "tools/shardpack/images/decode_image.h"
#include "tools/shardpack/images/exif.h"

/* What a user can do with an AVIF that is not read. */
#define AVIF_AS_PNG "convert it to PNG: python3 -c \"from PIL import Image; Image.open('a.avif').save('a.png')\""

enum decode_status gif_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			   struct decode_verdict *v);
enum decode_status tiff_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v);
enum decode_status avif_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v);

const char *decoder_gif_version(void);	/* "giflib 5.2.1" */
const char *decoder_tiff_version(void); /* "libtiff 4.5.0" */
const char *decoder_avif_version(void); /* "libavif 0.11.1 with dav1d 1.0.0 and libyuv 1857" */

/*
 * exif_stated() for an AVIF.  Sets *stated to 0 if it says nothing, or cannot be read.  False
 * without memory.
 */
bool avif_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated);

#endif
