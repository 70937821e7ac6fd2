/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reuse.h - a shard of another dataset, under a name of its own
 */
#ifndef SHARD_WRITE_REUSE_H
#define SHARD_WRITE_REUSE_H

#include "libshard/dataset/reader.h"
#include "shard_pack.h"
#include "shard_reuse.h"

/*
 * Make `path` the same shard as `from`, whose SHA-256 is in its manifest.  *how says what is tried
 * first, and becomes what was done: enum shard_reuse.  The bytes are durable then; the name of a
 * hard link, or one that was there, is so after reuse_sync().
 */
int reuse_shard(const struct shard_reader *from, const uint8_t sha256[32], const char *path, uint32_t *how,
		struct shard_error *err);

/* Make the name of a shard durable. */
int reuse_sync(const char *path, struct shard_error *err);

/* SHA-256 of a whole file. */
int reuse_hash_file(const char *path, uint8_t out[32], struct shard_error *err);

#endif
