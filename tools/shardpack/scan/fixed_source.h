/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_source.h - the way through a source of fixed records: each file in turn, then the plan of all of them
 */
#ifndef SHARD_SCAN_FIXED_SOURCE_H
#define SHARD_SCAN_FIXED_SOURCE_H

#include <stdbool.h>

struct classes;
struct request;

/* The steps that a source has of its own, in their order; each says why it fails and returns the exit code. */
struct fixed_source {
	int (*begin)(const struct request *r, void *context, struct classes *out); /* NULL: classes are what --classes says */
	int (*add_folder)(const struct request *r, void *context);		   /* of SRC alone; NULL: a folder is refused */
	int (*add_file)(const struct request *r, void *context, const char *path);
	int (*end)(const struct request *r, void *context, struct classes *out); /* NULL: nothing */
};

/* Begin the plan, and count its inputs.  A field with fewer records than another is an error; files without any are told of. */
int fixed_source_scan(const struct request *r, const struct fixed_source *steps, void *context);

/* Is SRC one folder? */
bool fixed_source_is_folder(const struct request *r);

#endif
