/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append.h - a dataset that gets the shards of others behind its own
 */
#ifndef SHARD_REUSE_APPEND_H
#define SHARD_REUSE_APPEND_H

#include <stdbool.h>

#include "tools/shardpack/reuse/part.h"

/*
 * Nobody else may append to the folder while *lock is open.  Where locks are not to be had it is
 * -1.  Says why it fails and returns the exit code.
 */
int append_lock(const char *dir, int *lock);

/*
 * Does part 0 end with the shards of all others, in this order?  With `appended` only if it was
 * append_parts() that put just these there.
 */
bool append_is_done(const struct part *part, uint32_t count, bool appended);

/*
 * Bring the shards of parts 1 and on into a folder of their own in that of part 0, keep the
 * manifest as dataset.manifest.ID, and replace it.  Classes and `by` are as of assemble().  Readers
 * see the old dataset or the new one, also after a kill; the same call then continues.
 */
int append_parts(const struct part *part, uint32_t count, uint32_t names, uint32_t by);

#endif
