/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.h - may records of these datasets lie in one?
 */
#ifndef SHARD_REUSE_AGREE_H
#define SHARD_REUSE_AGREE_H

#include "tools/shardpack/reuse/part.h"

/*
 * They may if they have the same fields, were made with the same recipe, and number their classes
 * alike: each list of classes is the beginning of the longest one.  *names becomes the part that
 * has that.  Says why not, and what to do, and returns the exit code.
 */
int parts_agree(const struct part *part, uint32_t count, uint32_t *names);

#endif
