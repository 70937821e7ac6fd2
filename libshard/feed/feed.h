/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - a feed hands out filled slots in the order of steps, and takes them back
 *
 * A feed knows nothing about GPUs, pools or the ends of epochs: its steps go on for ever.
 * feed_open() prepares arithmetic only.  feed_start() allocates memory and starts threads, which
 * belong to this process.  After that only the dataset allocates, when it opens a shard.
 *
 * Only the consumer calls these functions, except where they say otherwise.
 */
#ifndef SHARD_FEED_FEED_H
#define SHARD_FEED_FEED_H

#include "libshard/feed/crew_fill.h"
#include "libshard/feed/steps.h"

struct feed {
	struct shard_dataset *ds;	       /* const after open, as: */
	struct shard_loader_options o;	       /* settled; a feed uses those of slots, threads and paths */
	const struct transformed *transformed; /* NULL: slots have records as they are */
	struct layout layout;		       /* of slots */
	struct steps steps;		       /* changes only while the crew rests */
	struct cursor cursor;		       /* of the consumer */
	uint32_t lent_count;		       /* of the consumer: slots that its caller has */
	/* of the consumer: substituted and masked rows of slots that it has taken, in one epoch */
	uint64_t repaired, repaired_epoch;

	struct ring ring; /* filled in; these three are open once cursor.owner is set */
	struct supply supply;
	struct crew crew;
};

/*
 * The dataset and `transformed`, which may be NULL, must outlive the feed.  The other arguments are
 * copied.
 */
int feed_open(struct feed **out, struct shard_dataset *ds, const struct shard_loader_options *o,
	      const struct layout *layout, const struct transformed *transformed, const struct steps *steps,
	      struct shard_error *err);
/* A forked child may call this too: then it only frees memory. */
void feed_close(struct feed *f);

/* Put the ring into memory of the caller.  ARGUMENT if it does not fit, or the feed has started. */
int feed_use_memory(struct feed *f, void *memory, uint64_t bytes, struct shard_error *err);

/* Start to fill slots, from cursor.at on.  After a failure this can be tried again. */
int feed_start(struct feed *f, struct shard_error *err);

/* ---- slots; the feed has started ---- */

/*
 * Wait for the next slot.  It belongs to the caller until feed_give().  An error repeats until
 * feed_move().
 */
int feed_next(struct feed *f, uint32_t *slot, struct shard_error *err);
/* Would feed_next() return a slot at once?  If so, which one? */
bool feed_has_sound(struct feed *f, uint32_t *slot);
/* Wait until feed_next() need not wait, but not longer.  Returns false, or TIMEOUT, if it would. */
bool feed_await(struct feed *f, uint64_t most_ns);
int feed_wait(struct feed *f, uint64_t most_ns, struct shard_error *err);
/* Free a slot.  Any thread may do this. */
void feed_give(struct feed *f, uint32_t slot);

/* ---- places ---- */

/* Go on at `to`.  Does not wait.  Slots that were taken stay valid. */
void feed_move(struct feed *f, struct place to);
/* Use another order, with these early epochs.  Waits for the threads.  Call feed_move() next. */
int feed_adopt(struct feed *f, const struct order_params *params, const struct steps_early *early,
	       struct shard_error *err);

/* ---- batches in host memory ---- */

/* Lend a slot to the caller, as a batch.  feed_next() has returned it. */
void feed_lend(struct feed *f, uint32_t slot, struct shard_batch *batch);
/* Fails with ARGUMENT unless this batch is lent. */
int feed_check_lent(const struct feed *f, const struct shard_batch *batch, struct shard_error *err);
/* End the loan.  Call feed_give() when the slot may be filled again, never before. */
void feed_end_loan(struct feed *f, uint32_t slot);
/* Lend a slot again whose loan has ended and which was not given back, because that failed. */
void feed_lend_again(struct feed *f, uint32_t slot);

/* ---- what it did ---- */

/* Set all of *out.  What the feed does not count is 0. */
void feed_stats(struct feed *f, struct shard_loader_stats *out);
bool feed_last_damage(struct feed *f, struct shard_error *out); /* false: there was no damage */

#endif
