/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_source.h - the way through a source of fixed records, one file after the other
 */
#ifndef SHARD_SOURCES_FIXED_SOURCE_H
#define SHARD_SOURCES_FIXED_SOURCE_H

#include <stdbool.h>

struct classes;
struct request;

/* The steps of a source, in their order.  Each says why it fails and returns the exit code. */
struct fixed_source {
	/* NULL: classes are what --classes says */
	int (*begin)(const struct request *r, void *context, struct classes *out);
	/* of SRC alone; NULL: a folder is refused */
	int (*add_folder)(const struct request *r, void *context);
	int (*add_file)(const struct request *r, void *context, const char *path);
	int (*end)(const struct request *r, void *context, struct classes *out); /* NULL: nothing */
};

/*
 * Take the steps, begin the plan and count its inputs.  All fields must have the same number of
 * records; a warning counts the files without any.
 */
int fixed_source_scan(const struct request *r, const struct fixed_source *steps, void *context);

/* Is SRC one folder? */
bool fixed_source_is_folder(const struct request *r);

#endif
