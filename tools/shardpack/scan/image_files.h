/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_files.h - images that are files: all below a folder, or single ones
 *
 * Both say why they fail and return the exit code.
 */
#ifndef SHARD_SCAN_IMAGE_FILES_H
#define SHARD_SCAN_IMAGE_FILES_H

struct image_list;
struct labels;

/*
 * All images below a folder, by path.  Without --label-regex and --labels their class is the first
 * folder below it.  `path` is relative to the root, "" the root itself.
 */
int image_files_add_folder(struct image_list *images, struct labels *labels, const char *path);

/* One image; its class is the folder that it lies in. */
int image_files_add(struct image_list *images, struct labels *labels, const char *path);

#endif
