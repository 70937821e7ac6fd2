/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assemble.h - a dataset made of shards of others
 */
#ifndef SHARD_REUSE_ASSEMBLE_H
#define SHARD_REUSE_ASSEMBLE_H

#include "tools/shardpack/reuse/part.h"

/*
 * Make the folder OUT a dataset of the shards of these parts, one part behind the other, with the
 * classes of the part `names`.  `by` is how a shard is brought there at best, enum shard_reuse.
 *
 * The manifest is written last: until then OUT is no dataset, and the same call continues.  If OUT
 * is that dataset already, nothing is done.  OUT with anything else in it is refused, and left as
 * it is.  Says what it did or why it failed, and returns the exit code.
 */
int assemble(const char *out, const struct part *part, uint32_t count, uint32_t names, uint32_t by);

/* Names of the classes of a dataset, for a seal: to be freed, not what they point to.  Or NULL. */
const char **class_names_of(const struct part *p);

/* "3 hard links, 1 copy": what was done how often, by enum shard_reuse. */
#define REUSED_BYTES 160
void reused_text(char out[REUSED_BYTES], const uint64_t done[SHARD_REUSE_THERE + 1]);

#endif
