/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_table.h - the fields of an input beside image and label, found: tokens for its line in the plan
 *
 * In tables a field is a column: a path for images and masks, else the value itself, which the plan then holds.  Of images
 * that are files, it is a file whose path follows from that of the image.  (In archives it is a member of the sample:
 * scan_tar.c.)
 */
#ifndef SHARDPACK_SCAN_FIELDS_H
#define SHARDPACK_SCAN_FIELDS_H

#include <sys/stat.h>

#include "tools/shardpack/scan/path_table.h"

/* A table below the root, and what paths in it are relative to. */
struct scan_table {
	const struct request *request;
	const char *path;
	size_t folder_bytes; /* of the path, with the slash; 0: the root */
};

/* A path in a row, to one below the root, into `out` of 2 x PLAN_PATH_BYTES_MAX; it must be there. */
int scan_listed_path(const struct scan_table *t, uint64_t line, const char *listed, char *out, struct stat *st);

/* Size of an input.  What is no regular file has none that means anything; reading it will say what it is. */
uint64_t scan_size(const struct stat *st);

/* The tokens of a row, each with a blank before it, in place of what `out` has. */
int scan_fields_of_row(const struct scan_table *t, const struct table_row *row, struct text *out);

/*
 * The same of an image that is a file, at `below` under the folder that was named: a field is the file at from=, in which
 * {} is that without its extension.
 */
int scan_fields_beside(const struct request *r, const char *below, struct text *out);

/* Is a file of this name that of a field beside its image, from={}_mask.png?  Then it is no input. */
bool scan_is_of_field(const struct recipe *r, const char *name);

#endif /* SHARDPACK_SCAN_FIELDS_H */
