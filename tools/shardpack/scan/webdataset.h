/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webdataset.h - the samples of an archive as WebDataset has them: members of one key
 *
 * Members whose names agree up to the first dot of the last component are one sample, wherever they
 * lie.  It has one image and its label: a member .cls, or a key of .json that --label-key names.
 * Other members may be fields.
 */
#ifndef SHARD_SCAN_WEBDATASET_H
#define SHARD_SCAN_WEBDATASET_H

#include <stdbool.h>

struct image_archive;
struct image_list;
struct labels;

/* Are there members that end in .cls? */
bool webdataset_has_labels(const struct image_archive *a);

/*
 * Without labels in members: refuse an archive with a member such as img.v1.cls.  Its sample is
 * "img", so it would be no label, and the folder would be the class.  Returns the exit code.
 */
int webdataset_check_keys(const struct image_archive *a);

/*
 * Add the samples to a list, in the order of the archive.  Without `by_name`, the label of a sample
 * comes from one of its members.  With `by_name`, it is what image_archive_label() says of the
 * image, and members whose key has no image are ignored.  Says why it fails and returns the exit
 * code.
 */
int webdataset_add(struct image_archive *a, bool by_name, struct labels *labels, struct image_list *images);

#endif
