/* SPDX-License-Identifier: Apache-2.0 */
/*
 * special.h - output to files that are not regular: /dev/null, a pipe, a FIFO
 *
 * Such a file is written in place: to rename a new file over it would destroy the device or pipe.
 */
#ifndef SHARD_COMMON_SPECIAL_H
#define SHARD_COMMON_SPECIAL_H

#include <stdbool.h>
#include <stddef.h>

/* Is there something under this name that is neither a regular file nor a folder? */
bool special_is(const char *path);

/*
 * Write into it.  Waits for a FIFO's reader, until interrupted.  Returns the exit code; messages
 * begin with the path.
 */
int special_write(const char *path, const void *data, size_t bytes);

#endif
