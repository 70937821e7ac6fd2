/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_rows.h - the same image in several rows of a table
 *
 * A row is an input, also if another row has the same image, with another caption perhaps.  Keys of
 * records differ all the same: the second row of a.jpg is "a.jpg#2".
 */
#ifndef SHARD_SCAN_IMAGE_ROWS_H
#define SHARD_SCAN_IMAGE_ROWS_H

struct image_list;

/*
 * All images are listed: number the rows that have one path, in their order.  A path that is there
 * twice is an error if any of the two is no row.  Returns the exit code.
 */
int image_rows_number(struct image_list *images);

#endif
