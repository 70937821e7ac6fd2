/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h - how many threads compute at once
 *
 * A thread takes a turn before it computes, and gives it back before it waits.  The thread that has
 * waited longest is next.
 */
#ifndef LIBSHARD_BASE_TURNS_H
#define LIBSHARD_BASE_TURNS_H

#include <stdint.h>

#include "shard_pack.h"

/* At most `count` threads, 1 or more, have a turn at once.  NULL if there is no memory. */
struct shard_turns *turns_open(uint32_t count);
void turns_close(struct shard_turns *t); /* when no thread uses them any more; NULL is fine */

/* Turns may be absent: without them every thread computes when it likes. */
static inline void turns_take(const struct shard_turns *t)
{
	if (t)
		t->take(t->context);
}

static inline void turns_give(const struct shard_turns *t)
{
	if (t)
		t->give(t->context);
}

#endif
