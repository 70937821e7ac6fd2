/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_archive.h - the images in a tar archive, as WebDataset, img2dataset or tar itself made it, and in a ZIP likewise
 *
 * WebDataset's way, if there are members that end in .cls, or --label-key asks for .json: members whose names agree up to
 * the first dot of the last component are one sample, wherever they lie; it has one image and its label.  Else each image
 * is a sample, and its folder in the archive is its class, or what --label-regex and --labels say of its name.
 */
#ifndef SHARDPACK_SCAN_TAR_H
#define SHARDPACK_SCAN_TAR_H

#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/labels.h"

/* Add the images of the archive at `path` below the root.  Returns the exit code. */
int scan_tar(struct items *it, struct labels *labels, const char *path);

/* Is a file of this name an archive? */
bool scan_tar_is_name(const char *name);

#endif /* SHARDPACK_SCAN_TAR_H */
