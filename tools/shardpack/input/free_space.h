/* SPDX-License-Identifier: Apache-2.0 */
/*
 * free_space.h - how much may still be written to a file system
 */
#ifndef SHARD_SHARDPACK_INPUT_FREE_SPACE_H
#define SHARD_SHARDPACK_INPUT_FREE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Bytes that this user may still write to the file system of `dir`, or of the folder above it if
 * there is none yet.
 */
int free_space(const char *dir, uint64_t *free_bytes);

/* May `bytes` be written to the file system of this file?  True if nothing says how many. */
bool free_space_fits(int fd, uint64_t bytes);

/*
 * EXIT_DONE if what the file `name` unpacks to fits beside the unnamed file `fd` of the folder
 * `spool_dir`; else one line and EXIT_IO.
 */
int free_space_check_spool(int fd, const char *name, uint64_t needed_bytes, const char *spool_dir);

#endif
