/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_table.h - the images that a table names, with their fields
 */
#ifndef SHARD_SCAN_IMAGE_TABLE_H
#define SHARD_SCAN_IMAGE_TABLE_H

struct image_list;
struct labels;

/* Add the files that a table names, relative to its folder or to --root.  Returns the exit code. */
int image_table_add(struct image_list *images, struct labels *labels, const char *path);

#endif
