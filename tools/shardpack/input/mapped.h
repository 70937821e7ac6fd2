/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.h - bytes copied out of a mapped file, which may become shorter meanwhile
 */
#ifndef SHARD_INPUT_MAPPED_H
#define SHARD_INPUT_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Map the first `bytes` of a file, to be read here and there.  NULL if that cannot be: read it in
 * another way.
 */
const uint8_t *mapped_open(int fd, uint64_t bytes);
void mapped_close(const uint8_t *map, uint64_t bytes); /* NULL is nothing */

/* Any thread.  False if the file does not give them: reading it says why. */
bool mapped_copy(void *out, const uint8_t *from, size_t bytes);

#endif
