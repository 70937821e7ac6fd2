/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.h - from a decoded mask to the bytes of a record, transformed like its image
 *
 * The pixels that the image's resize, crop and padding (transform_image.h) leave are chosen, not
 * computed: Pillow's Image.resize(size, NEAREST) and the crop, bit for bit, so that no value
 * appears that the file does not have.  That is what torch calls "nearest-exact": its plain
 * "nearest" takes the pixel's corner instead of its middle.  Padding is `fill`.
 *
 * The orientation is that of the mask's own file.  The caller checks that a mask is as large as its
 * image.
 */
#ifndef SHARD_IMAGE_MASK_H
#define SHARD_IMAGE_MASK_H

#include "tools/shardpack/images/transform_image.h"

/* One thread's memory from mask to mask. */
struct mask;

/*
 * Of the options, the size, crop and fit count.  A pixel has `sample_bytes`: 1, 2 or 4.  NULL when
 * memory ran out.
 */
struct mask *mask_open(const struct transform_options *opt, uint32_t sample_bytes, uint32_t fill);
void mask_close(struct mask *m);

/* crop * crop pixels: what is written for a mask. */
size_t mask_record_bytes(const struct transform_options *opt, uint32_t sample_bytes);

/* A record of nothing but `fill`. */
void mask_fill(const struct transform_options *opt, uint32_t sample_bytes, uint32_t fill, uint8_t *dst);

/*
 * Takes a mask from decoder_mask() or decoder_coded_mask() and makes it one record at `dst`, which
 * is complete when that returns well.  One mask at a time.  `orientation`: 1 to 8, see exif.h.
 */
const struct image_sink *mask_sink(struct mask *m, uint32_t orientation, uint8_t *dst);

/* The width and height, set upright, of the mask that it was given last. */
void mask_source_size(const struct mask *m, uint32_t *width, uint32_t *height);

#endif
