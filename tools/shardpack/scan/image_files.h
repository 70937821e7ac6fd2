/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_files.h - images that are files of their own but in no folder of classes: flat folders, tables, single files
 */
#ifndef SHARDPACK_SCAN_LISTS_H
#define SHARDPACK_SCAN_LISTS_H

#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/labels.h"

/*
 * All images below a folder, by path.  Without --label-regex and --labels their class is the first folder below it.
 * `path` is relative to the root, "" the root itself.
 */
int scan_folder(struct items *it, struct labels *labels, const char *path);

/* The files that a table names, relative to its own folder or to --root. */
int scan_table(struct items *it, struct labels *labels, const char *path);

/* One image; its class is the folder that it lies in. */
int scan_image(struct items *it, struct labels *labels, const char *path);

#endif /* SHARDPACK_SCAN_LISTS_H */
