/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_file.h - a file of the source: opened by offset, or only looked at
 */
#ifndef SHARD_SCAN_INPUT_FILE_H
#define SHARD_SCAN_INPUT_FILE_H

#include <stdint.h>

struct request;
struct stat;

/*
 * Add a file to the plan; one whose name ends with .gz, .tgz or .zst is unpacked.  *file is what
 * can be read by offset.  Says why it fails and returns the exit code.
 */
int input_file_open(const struct request *r, const char *path, uint32_t *file);

/*
 * The size of an input in a plan.  It is 0 for anything but a regular file; the error comes when
 * the input is read.
 */
uint64_t input_file_bytes(const struct stat *st);

#endif
