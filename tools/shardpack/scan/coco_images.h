/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_images.h - the images that a JSON file of COCO lists, with fields from their annotations
 *
 * from= is a key of the annotations.  Without it boxes come from `bbox`, a mask from
 * `segmentation`, text from `caption`, and numbers from the key with the name of the field.
 * `category` is the class of an annotation: the place of its category_id among all ids.
 */
#ifndef SHARD_COCO_COCO_IMAGES_H
#define SHARD_COCO_COCO_IMAGES_H

struct classes;
struct image_list;

/*
 * Add the images of `path`, below the root, in its order.  `classes` are the names of its
 * categories.  Returns the exit code.
 */
int coco_images_add(struct image_list *images, struct classes *classes, const char *path);

#endif
