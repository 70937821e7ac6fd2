/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_beside.h - masks and boxes that lie beside an image, and follow it
 */
#ifndef SHARD_TRANSFORM_TRANSFORM_BESIDE_H
#define SHARD_TRANSFORM_TRANSFORM_BESIDE_H

#include "libshard/transform/transform.h"

#define TRANSFORM_BOX_BYTES 16u /* x, y, x, y as float32, in pixels of the image */

/*
 * A mask of the image's height and width, in elements of so many bytes: those of Pillow's
 * mask.crop(part).resize(size, NEAREST), mirrored like the image.
 */
void transform_mask(const struct transform_plan *p, const struct shard_transform_row *row, uint32_t element_bytes,
		    const uint8_t *mask, uint8_t *out);

/*
 * Boxes in pixels of the output, as those of torchvision's v2.functional.resized_crop() and
 * horizontal_flip(): cut off at the edges of the part.  A box outside of it has no area.
 */
void transform_boxes(const struct transform_plan *p, const struct shard_transform_row *row, uint64_t count,
		     const uint8_t *boxes, uint8_t *out);

#endif
