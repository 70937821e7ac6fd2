/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_plan.h - the classes of the images that were found, and a line of the plan for each
 */
#ifndef SHARD_SCAN_IMAGE_PLAN_H
#define SHARD_SCAN_IMAGE_PLAN_H

struct image_list;

/* Make classes of the labels and lines of the images.  Call image_rows_number() before. */
int image_plan(struct image_list *images);

#endif
