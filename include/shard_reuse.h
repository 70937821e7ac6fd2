/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_reuse.h - make a dataset of shards that other datasets have
 *
 * For programs that merge or split datasets without packing records again, as `shardpack merge`
 * does.  The first comment of shard.h holds for this header, too.
 *
 *	shard_seal_open(&seal, dir, &options, &err);
 *	shard_seal_reuse(seal, ds, 0, "00000.shard", &how, &err);	for each shard
 *	shard_seal_finish(seal, &err);
 *
 * The caller sees to it that the records may lie in one dataset: that classes have the same
 * numbers, and that records were made alike.  Groups and fields are compared.
 */
#ifndef SHARD_REUSE_H
#define SHARD_REUSE_H

#include "shard.h"
#include "shard_pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a shard of another dataset comes into the folder. */
enum shard_reuse {
	SHARD_REUSE_LINK = 0,  /* a hard link: one file, which is in both datasets */
	SHARD_REUSE_CLONE = 1, /* a file of its own that shares its blocks, on file systems that can (reflink) */
	SHARD_REUSE_COPY = 2,  /* compared with the manifest, made durable, read back and verified */
	SHARD_REUSE_THERE = 3, /* it had that name before */
};

/*
 * Add shard `shard_idx` of the dataset `from`, under the name `file`, which must be free or hold
 * this very shard.  EXISTS if it holds anything else, which is left as it is.  *how is what is
 * tried first, and becomes what was done: what cannot be linked is cloned, and what cannot be
 * cloned is copied.  Names are durable after shard_seal_finish().
 */
SHARD_API int shard_seal_reuse(struct shard_seal *s, struct shard_dataset *from, uint64_t shard_idx, const char *file,
			       uint32_t *how, struct shard_error *err);

#ifdef __cplusplus
}
#endif
#endif
