/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out_file.h - a file that is complete or absent, or stdout
 *
 * Its contents are small, and are put together in memory.  Functions return an exit code, having
 * said why.
 */
#ifndef SHARD_SHARDCAT_OUT_FILE_H
#define SHARD_SHARDCAT_OUT_FILE_H

#include "tools/common/memory_file.h"

/* Write to f->stream. */
int out_file_open(struct memory_file *f);

/*
 * If `rc` is EXIT_DONE, write it all to `path`, or to stdout if that is NULL or "-"; else return
 * `rc`.  A file is written beside its name and then renamed, over an older one if there is one; a
 * device or pipe is written to as it is.  Binary data is refused by a terminal.
 */
int out_file_close(struct memory_file *f, const char *path, int rc);

#endif
