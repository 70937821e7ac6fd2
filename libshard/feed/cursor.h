/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.h - how far a consumer is: its place, its process, and the error that stopped it
 *
 * The consumer is the thread that asks for batches.  A feed has a cursor, and so has the loader on
 * top of it, which may be some steps behind.  Only the consumer uses them, so they need no lock.
 */
#ifndef SHARD_STEPS_CURSOR_H
#define SHARD_STEPS_CURSOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "shard.h"

/*
 * A place in the endless series of steps: the epoch, the position where the epoch was entered, and
 * the steps since then.
 */
struct place {
	uint64_t epoch, first_position, step;
};

/* The rows of a step: arrays of batch_records. */
struct step_rows {
	uint64_t *record;
	uint8_t *row_flags;
	uint16_t *component; /* only of mixtures */
};

struct cursor {
	struct place at; /* the next step */
	pid_t owner;	 /* the process that started the threads; 0: no process has yet */
	int failed;	 /* a status that repeats until the cursor moves; or SHARD_OK */
	struct shard_error why;
};

/*
 * Is this process a forked child of the owner?  A child has no threads, and lacks some of the
 * memory.  It may only close what it has inherited.
 */
bool cursor_is_inherited(const struct cursor *c);
/* Fails with ARGUMENT if so. */
int cursor_check_owner(const struct cursor *c, struct shard_error *err);

/* Stop with this error.  Returns its status and copies it to `err`. */
int cursor_fail(struct cursor *c, int rc, const struct shard_error *why, struct shard_error *err);
/* Returns the error that the cursor stopped with, or SHARD_OK. */
int cursor_error(const struct cursor *c, struct shard_error *err);
/* Go on elsewhere and forget the error. */
void cursor_move(struct cursor *c, struct place to);

#endif
