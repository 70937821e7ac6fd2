/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_readers.h - the shards of a dataset that are open, which may be fewer than were used
 *
 * Linux limits the maps of a process, and each open shard takes one.  When too many are open, those
 * that were not used for longest are closed.  A thread that uses readers is inside, from
 * readers_enter() to readers_leave(): a reader that it gets there stays open until it leaves.  A
 * reader that a program gets from shard_dataset_reader() stays open as long as the dataset.
 *
 * There is no lock, which a forked child might inherit locked.  A child of a fork that happened
 * between enter and leave of another thread closes nothing, and may reach the limit.
 */
#ifndef SHARD_READ_DATASET_READERS_H
#define SHARD_READ_DATASET_READERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct shard_reader;

#define READERS_KEPT  1u /* in a word: it stays open */
#define READERS_USED  2u /* in a word: it was used since readers_make_room() has passed */
#define READERS_FLAGS ((uintptr_t)3)

struct readers {
	_Atomic uintptr_t *word; /* [count]: a reader, with flags; 0 if the shard is not open */
	uint64_t count, most;	 /* const after open; more than `most` readers of a process are too many */
	/*
	 * A reader that is taken out of the table waits in the list of its era.  The next era
	 * begins once nobody is inside of the one before.  Then nobody can have what waited there.
	 */
	atomic_uint era, inside[2];
	atomic_flag busy; /* a thread makes room, and owns: */
	struct shard_reader *retired[2];
	uint64_t hand; /* the next word to look at */
};

/* Returns false if there is no memory. */
bool readers_open(struct readers *t, uint64_t count);
void readers_close(struct readers *t); /* and all readers */

unsigned readers_enter(struct readers *t); /* returns what leave wants */
void readers_leave(struct readers *t, unsigned entered);

/* The reader of a shard, or NULL.  Inside. */
static inline struct shard_reader *readers_peek(const struct readers *t, uint64_t idx)
{
	uintptr_t word = atomic_load_explicit(&t->word[idx], memory_order_acquire);

	return (struct shard_reader *)(word & ~READERS_FLAGS); /* NOLINT(performance-no-int-to-ptr) */
}

/* The same, which is in use now. */
struct shard_reader *readers_use(struct readers *t, uint64_t idx);

/* Only one that is kept: nobody need be inside. */
struct shard_reader *readers_kept(const struct readers *t, uint64_t idx);

/*
 * Enter a reader that was just opened, or close it if another thread was first.  Returns which it
 * is.  Inside.
 */
struct shard_reader *readers_add(struct readers *t, uint64_t idx, struct shard_reader *r);

/* Keep it open as long as the dataset.  Returns false if it is not there any more. */
bool readers_keep(struct readers *t, uint64_t idx, const struct shard_reader *r);

/*
 * If too many are open, close some.  With `all`, close all that are not kept, however many are
 * open.  Returns whether one was taken out of the table or closed.
 */
bool readers_make_room(struct readers *t, bool all);

#endif
