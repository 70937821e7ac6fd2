/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.h - pieces of work done by several threads, whose results one thread takes in order
 *
 * Pieces are tickets.  Threads start them in order and finish them in any order.  Results come out
 * in order, so the number of threads never changes a byte.  Ticket t lives in slot t % slot_count
 * until it is released: when the thread that takes results is slow, the others wait, and memory
 * does not grow.  The caller defines what a slot contains.
 */
#ifndef SHARD_COMMON_WORKERS_H
#define SHARD_COMMON_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "shard_pack.h"
#include "tools/common/progress.h"

/*
 * Small results that are worth taking together: it takes threads long to change places, and more
 * of them would leave the CPU's cache meanwhile.
 */
#define WORKERS_AT_ONCE 8

struct workers_options {
	uint64_t ticket_count, slot_count;
	bool on_demand;	       /* none is started before workers_allow(), and ticket_count is the most that may come */
	unsigned worker_count; /* no more are started than there are tickets */
	/* wake the taker when this many are done in a row, or nothing else would come; 0 is 1 */
	unsigned wake_count;
	struct shard_turns *turns; /* each works in a turn */
	struct progress *progress; /* ticked while waiting */
	void *context;		   /* first argument of these: */

	void *(*begin)(void *context);		      /* one thread's own data; NULL when memory ran out */
	void (*end)(void *own);			      /* in that thread; NULL is nothing */
	void (*assign)(void *context, uint64_t slot); /* one at a time: the next ticket, in order, has this slot */
	void (*work)(void *context, void *own, uint64_t slot);
	/* one at a time: its ticket was released, or never will be; may be NULL */
	void (*give_back)(void *context, uint64_t slot);
};

struct workers;

/* How many threads workers_open() will start for this number of tickets. */
unsigned workers_needed(unsigned worker_count, uint64_t ticket_count);

/* Start them.  Returns the exit code; fewer threads than asked for are a warning. */
int workers_open(struct workers **out, const struct workers_options *opt);

/* With on_demand: the next `count` tickets may be started.  The taker asks for no others. */
void workers_allow(struct workers *w, uint64_t count);

#define WORKERS_NO_SLOT UINT64_MAX

/*
 * The slot of the next ticket in order, borrowed until workers_release(); WORKERS_NO_SLOT behind
 * the last.  Returns the exit code: EXIT_INTERRUPTED if the user asked to stop.
 */
int workers_next(struct workers *w, uint64_t *slot);
/* The same slot if its ticket is done already; WORKERS_NO_SLOT otherwise. */
uint64_t workers_next_now(struct workers *w);
void workers_release(struct workers *w);

/* Stop them, wherever they are.  NULL is nothing. */
void workers_close(struct workers *w);

#endif
