/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - a file that cannot be read by offset to one that can
 */
#ifndef SHARD_INPUT_UNPACK_H
#define SHARD_INPUT_UNPACK_H

#include <stdint.h>

#include "tools/shardpack/input/unpack_most.h"

/* No input may be larger.  A member of a ZIP that says it is becomes a hole: it cannot be read. */
#define UNPACK_MEMBER_BYTES_MAX (UINT64_C(1) << 30)

/*
 * The least that `how` will write, by what the file says of itself: its head, its end or its
 * directory.  0 if that says nothing.
 */
uint64_t unpack_least_bytes(const char *how, int in_fd, uint64_t in_bytes);

/*
 * Write to `out_fd`, an empty file, what `how` makes of the `in_bytes` of `in_fd`; the words are
 * those of stored.h.  Every checksum on the way is compared.  `name` is for messages.  Returns the
 * exit code: EXIT_BAD if the input is damaged, that of `most` if it has more.  *written is what was
 * written, without holes.  An `out_fd` of -1 looks only, but not of a ZIP.
 */
int unpack_run(const char *how, int in_fd, uint64_t in_bytes, int out_fd, const char *name,
	       const struct unpack_most *most, uint64_t *written);

#endif
