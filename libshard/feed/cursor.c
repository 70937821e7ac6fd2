/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.c - how far a consumer is: its place, its process, and the error that stopped it
 *
 * The consumer is the thread that asks for batches.  A feed has a cursor, and so has the loader on
 * top of it, which may be some steps behind.  Only the consumer uses them, so they need no lock.
 */
#include "libshard/feed/feed.h"

#include <unistd.h>

#include "libshard/base/error.h"

bool cursor_is_inherited(const struct cursor *c)
{
	return c->owner && c->owner != getpid();
}

int cursor_check_owner(const struct cursor *c, struct shard_error *err)
{
	if (!cursor_is_inherited(c))
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT, "this loader belongs to process %ld; open another one after fork",
			 (long)c->owner);
}

int cursor_fail(struct cursor *c, int rc, const struct shard_error *why, struct shard_error *err)
{
	c->failed = rc;
	c->why = *why;
	return cursor_error(c, err);
}

int cursor_error(const struct cursor *c, struct shard_error *err)
{
	if (c->failed && err)
		*err = c->why;
	return c->failed;
}

void cursor_move(struct cursor *c, struct place to)
{
	c->at = to;
	c->failed = SHARD_OK;
}
