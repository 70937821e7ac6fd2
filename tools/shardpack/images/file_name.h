/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_name.h - the kind of a file or member, judged by the extension of its name
 *
 * Upper and lower case are the same.
 */
#ifndef SHARD_SHARDPACK_IMAGES_FILE_NAME_H
#define SHARD_SHARDPACK_IMAGES_FILE_NAME_H

#include <stdbool.h>

/*
 * Does the name end in this extension, with something before it?  The extension begins with a dot.
 */
bool file_name_has_extension(const char *name, const char *extension);

/* An image: one of the extensions of images, whatever stands before it. */
bool file_name_is_image(const char *name);

/* The same for an extension without its dot: "jpg", but not "seg.jpg". */
bool file_name_is_image_suffix(const char *suffix);

/* A list of images as COCO has it: .json, or one that gzip, bzip2, xz or Zstandard packed. */
bool file_name_is_coco(const char *name);

/* A table: .csv, .tsv, .jsonl or .ndjson. */
bool file_name_is_table(const char *name);

/* An archive of images: .tar, .zip, or a tar that gzip, bzip2, xz or Zstandard packed. */
bool file_name_is_archive(const char *name);

#endif
