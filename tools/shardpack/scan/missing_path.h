/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missing_path.h - a table names a file that is not there: is it there under another name?
 *
 * What is found depends on files beside the source, so it is a warning, and in no plan.
 */
#ifndef SHARD_SCAN_MISSING_PATH_H
#define SHARD_SCAN_MISSING_PATH_H

#include <stdbool.h>
#include <stdint.h>

struct request;

/*
 * Row `line` of `table`, below the root, lists a path that is `path` below the root; such paths
 * begin at `folder` below the root, which is empty or ends in a slash.  Warns, and returns true, if
 * an option would find the file.
 */
bool missing_path_warn(const struct request *r, const char *table, const char *folder, uint64_t line,
		       const char *listed, const char *path);

#endif
