/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h - turns that may be absent: without them every thread computes when it likes
 *
 * Threads that share turns also share memory, one after the other: the kernel clears each page when it
 * is touched first, and a page that was touched before is free of that.
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

/* Memory that was given back, of the one size that all users of these turns need; or NULL. */
void *turns_take_memory(struct shard_turns *t);
/* Keep it for the next one, or free it.  It is of mem_aligned(), or NULL. */
void turns_give_memory(struct shard_turns *t, void *memory);

#endif
