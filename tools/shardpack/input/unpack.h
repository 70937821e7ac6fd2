/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - a file that cannot be read by offset to one that can
 */
#ifndef SHARD_INPUT_UNPACK_H
#define SHARD_INPUT_UNPACK_H

#include <stdint.h>

/* The least that `how` will write, by the file's own head; 0 if that says nothing. */
uint64_t unpack_least_bytes(const char *how, int in_fd, uint64_t in_bytes);

/*
 * Write to `out_fd`, an empty file, what `how` makes of the `in_bytes` of `in_fd`; the words are
 * those of stored.h.  Every checksum on the way is compared.  `name` is for messages.  Returns the
 * exit code: EXIT_BAD if the input is damaged.
 */
int unpack_run(const char *how, int in_fd, uint64_t in_bytes, int out_fd, const char *name);

#endif
