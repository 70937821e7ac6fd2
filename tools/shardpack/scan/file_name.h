/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_name.h - what a file or a member holds, as far as the end of its name says it
 *
 * Letters count the same in both cases.
 */
#ifndef SHARD_SCAN_FILE_NAME_H
#define SHARD_SCAN_FILE_NAME_H

#include <stdbool.h>

/* Has the name something before this extension?  It begins with a dot. */
bool file_name_has_extension(const char *name, const char *extension);

/* An image: one of the extensions of images, whatever stands before it. */
bool file_name_is_image(const char *name);

/* The same of what stands behind the dot: "jpg", but not "seg.jpg". */
bool file_name_is_image_suffix(const char *suffix);

/* An archive of images: .tar, .tar.gz, .tgz, .tar.zst or .zip. */
bool file_name_is_archive(const char *name);

#endif
