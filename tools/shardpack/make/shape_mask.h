/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_mask.h - a mask drawn from the objects that COCO describes, parse/coco_shape.h
 *
 * Drawn as large as the image, then transformed as a mask of a file is.  0 is where no object lies.
 */
#ifndef SHARD_CONVERT_SHAPE_MASK_H
#define SHARD_CONVERT_SHAPE_MASK_H

#include <stdbool.h>
#include <stdint.h>

struct field_part;
struct mask;
struct plan;
struct stored;
struct verdict;

/* One thread's memory from mask to mask.  NULL when memory ran out. */
struct shape_mask;
struct shape_mask *shape_mask_open(const struct plan *plan, const struct stored *stored);
void shape_mask_close(struct shape_mask *m);

/* Give back the memory that a large image needed. */
void shape_mask_shrink(struct shape_mask *m);

/*
 * The objects of `part` in a picture of that size, which has this orientation, to the pixels of a
 * record, of so many bytes each.  False if `v` says why not.
 */
bool shape_mask_put(struct shape_mask *m, const struct field_part *part, uint32_t width, uint32_t height,
		    uint32_t sample_bytes, uint32_t orientation, struct mask *to, uint8_t *dst, struct verdict *v);

#endif
