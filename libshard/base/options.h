/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - reads a caller's option struct of any age
 */
#ifndef SHARD_BASE_OPTIONS_H
#define SHARD_BASE_OPTIONS_H

#include <stddef.h>

struct shard_error;

/*
 * Copy `theirs` (may be NULL) into `ours`.  A shorter, older struct leaves our newer fields zero,
 * which is their default.  A longer, newer one is welcome while its unknown fields are zero; else
 * it asks for something that we would silently not do: UNSUPPORTED.  Both begin with a size_t size.
 */
int options_take(void *ours, size_t our_bytes, const void *theirs, struct shard_error *err);

#endif
