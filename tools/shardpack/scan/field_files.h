/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_files.h - the fields of an image that is a file: files beside it, found
 *
 * A field is the file at from=, in which {} stands for the path of the image without its extension.
 */
#ifndef SHARD_SCAN_FIELD_FILES_H
#define SHARD_SCAN_FIELD_FILES_H

#include <stdbool.h>

struct bad_input;
struct recipe;
struct request;
struct text;

/*
 * The tokens of the fields of the image at `below`, under the folder that was named, each with a
 * blank before it; they replace what `out` has.  Says why it fails and returns the exit code.  A
 * file that is not there makes the image bad input, which `bad` says.
 */
int field_files_find(const struct request *r, const char *below, struct text *out, struct bad_input *bad);

/* Does a file of this name hold a field, as of from={}_mask.png?  Then it is no input. */
bool field_files_has(const struct recipe *r, const char *name);

#endif
