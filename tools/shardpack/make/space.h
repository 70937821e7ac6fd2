/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - what a dataset will need on disk, before its first byte
 *
 * Records have a fixed size, so this is arithmetic: exact to the byte for raw groups when no
 * input is left out, and the most it can be for compressed ones.
 */
#ifndef SHARD_BUILD_SPACE_H
#define SHARD_BUILD_SPACE_H

#include <stdbool.h>
#include <stdint.h>

struct job;

/* Bytes of the shard's file. */
uint64_t space_of_shard(const struct job *job, uint64_t shard_idx, uint64_t provenance_bytes);

/* Of all shards with todo[] set (NULL: all), and of what lies beside them for a while. */
uint64_t space_needed(const struct job *job, const bool *todo);

/* EXIT_DONE if that much can be written to the output folder; else one line and EXIT_IO. */
int space_check(const struct job *job, uint64_t needed_bytes);

#endif
