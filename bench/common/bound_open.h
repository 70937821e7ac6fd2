/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_open.h - the bare opening of shards
 */
#ifndef SHARD_COMMON_BOUND_OPEN_H
#define SHARD_COMMON_BOUND_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Open these files, read both pages and `bytes` at `offset` of each, and close them.  Milliseconds.
 */
struct bound_open {
	const char *path;
	uint64_t file_bytes, offset;
};
double bound_open(const struct bound_open *file, size_t count, size_t bytes, uint8_t *out);

/* Read a small file and hash it.  Milliseconds. */
double bound_load(const char *path, uint8_t *out, size_t bytes);

#endif
