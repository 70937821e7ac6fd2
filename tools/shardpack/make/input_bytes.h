/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_bytes.h - the bytes of an input, exactly those that were planned
 */
#ifndef SHARD_CONVERT_INPUT_BYTES_H
#define SHARD_CONVERT_INPUT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/shardpack/input/unpack.h"

struct plan;
struct scratch;
struct stored;
struct verdict;

/* An input that is more than this cannot be an image worth packing, and is not read. */
#define INPUT_BYTES_MAX UNPACK_MEMBER_BYTES_MAX

/* Bytes that are a file of their own, or part of a file of the plan. */
struct input_bytes {
	const char *path; /* of a file of its own */
	uint32_t file;	  /* or PLAN_NO_FILE */
	uint64_t offset, bytes;
	uint64_t time_ns; /* of a file of its own: when it was written; SOURCE_NO_TIME: whenever */
};

/*
 * Is a GIF, TIFF or AVIF, by its content, read by the library that the maker of the plan had?  False
 * if `v` says that it is not: then another process would make another record of it, or none.
 */
bool input_bytes_same_build(const struct plan *p, const uint8_t *bytes, size_t size, struct verdict *v);

/*
 * Read all of them into `to`.  Of a file of its own, `stored` may be NULL.  False if `v` says why
 * not.
 */
bool input_bytes_read(const struct input_bytes *in, int source_fd, const struct stored *stored, struct scratch *to,
		      struct verdict *v);

#endif
