/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_hash.h - SHA-256 by threads that help each other
 *
 * A processor hashes two streams in little more time than one.  Shards that are read back side by side are such streams:
 * of two threads that come here, one does the work of both, and the other one's processor is free.
 */
#ifndef LIBSHARD_STORE_SHARED_HASH_H
#define LIBSHARD_STORE_SHARED_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "libshard/codec/sha256.h"

/*
 * As sha256_update(), from any thread; returns when these bytes are hashed.  Another thread may have read them meanwhile,
 * so they must be memory that never faults.
 */
void shared_hash_update(struct sha256 *s, const uint8_t *data, size_t data_bytes);

#endif
