/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h - turns that may be absent: without them every thread computes when it likes
 */
#ifndef SHARD_BASE_TURNS_H
#define SHARD_BASE_TURNS_H

#include "shard_pack.h"

static inline void turns_take(struct shard_turns *t)
{
	if (t)
		shard_turns_take(t);
}

static inline void turns_give(struct shard_turns *t)
{
	if (t)
		shard_turns_give(t);
}

#endif
