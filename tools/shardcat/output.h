/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - bytes to a file that is complete or absent, or to stdout
 */
#ifndef TOOLS_SHARDCAT_OUTPUT_H
#define TOOLS_SHARDCAT_OUTPUT_H

#include <stddef.h>

/*
 * Write to `path`, or to stdout if it is NULL or "-".  A file is written beside its name and
 * then renamed, over an older one if there is one; a device or pipe is written to as it is.
 * Binary data is refused by a terminal.  Returns an exit code, having said why.
 */
int output_binary(const char *path, const void *data, size_t bytes);

#endif
