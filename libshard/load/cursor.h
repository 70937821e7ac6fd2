/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.h - where a consumer is: its place, the process that it belongs to, and the error that
 * stopped it
 *
 * A feed has one, and so has the loader on top of it, which may be some steps behind.  The consumer
 * is the thread that asks for batches; a cursor belongs to it and needs no lock.
 */
#ifndef SHARD_LOAD_CURSOR_H
#define SHARD_LOAD_CURSOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "shard.h"

/* A place in the endless row of steps: epoch, position where the epoch was entered, steps since. */
struct place {
	uint64_t epoch, first_position, step;
};

struct cursor {
	struct place at; /* what comes next */
	pid_t owner;	 /* the process that started threads; 0: none were started yet */
	int failed;	 /* status that is repeated until the cursor moves; SHARD_OK: none */
	struct shard_error why;
};

/* Is this another process than the owner, such as a child of it? */
bool cursor_is_inherited(const struct cursor *c);
int cursor_check_owner(const struct cursor *c, struct shard_error *err); /* ARGUMENT if so */

/* Stop with this error.  Returns its status, and copies it to `err`. */
int cursor_fail(struct cursor *c, int rc, const struct shard_error *why, struct shard_error *err);
/* The error that it stopped with, or SHARD_OK. */
int cursor_error(const struct cursor *c, struct shard_error *err);
/* Go on elsewhere; the error is forgotten. */
void cursor_move(struct cursor *c, struct place to);

#endif
