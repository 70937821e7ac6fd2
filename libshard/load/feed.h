/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - hands out filled slots in the order of steps, and takes them back
 *
 * A feed knows neither GPUs nor ends of epochs: its steps go on for ever.  Opening one prepares
 * arithmetic only.  Memory and threads come with feed_start(), and belong to the process that called
 * it; nothing is allocated after that, but what the dataset needs for a shard that is new to it.
 *
 * Calls belong to the consumer, the thread that asks for batches, unless they say otherwise.
 */
#ifndef SHARD_LOAD_FEED_H
#define SHARD_LOAD_FEED_H

#include "libshard/load/crew.h"
#include "libshard/load/steps.h"

struct feed_options { /* in the words of struct shard_loader_options, with defaults filled in */
	uint32_t slot_count, thread_count, path, on_corrupt;
	uint64_t stage_bytes;
};

struct feed {
	struct shard_dataset *ds; /* const after open, as: */
	struct feed_options o;
	struct layout layout;
	struct steps steps;   /* changes only while the crew rests */
	struct cursor cursor; /* the consumer's: the slot that feed_next() gives next */
	uint32_t lent_count;  /* the consumer's: slots that its caller has */

	/* Once cursor.owner is set.  Each says itself what threads share of it. */
	struct ring ring; /* its sizes, and memory that was lent for it, are there before */
	struct supply supply;
	struct crew crew;
};

/* Copies all that it is given but the dataset, which must outlive the feed. */
int feed_open(struct feed **out, struct shard_dataset *ds, const struct feed_options *o, const struct layout *layout,
	      const struct steps *steps, struct shard_error *err);
/* By a child process it frees memory only. */
void feed_close(struct feed *f);

/* The ring shall be in this memory, which stays the caller's.  ARGUMENT if it does not fit, or too late. */
int feed_use_memory(struct feed *f, void *memory, uint64_t bytes, struct shard_error *err);

/* Memory and threads, which fill slots from the cursor's place on.  Once; after a failure, again. */
int feed_start(struct feed *f, struct shard_error *err);

/* ---- slots, once it has started ---- */

/* The next slot, once it is filled.  An error repeats until feed_move(). */
int feed_next(struct feed *f, uint32_t *slot, struct shard_error *err);
/* Would feed_next() give a slot, without waiting?  Which. */
bool feed_has_sound(struct feed *f, uint32_t *slot);
/* Wait at most so long until feed_next() need not.  False: it still would. */
bool feed_await(struct feed *f, uint64_t most_ns);
int feed_wait(struct feed *f, uint64_t most_ns, struct shard_error *err); /* the same: TIMEOUT */
void feed_give(struct feed *f, uint32_t slot); /* the slot is free again; any thread may say so */

/* ---- places ---- */

/* Go on at `to`.  Waits for nothing; slots that were taken stay valid. */
void feed_move(struct feed *f, struct place to);
/* Another order.  Waits for the crew; feed_move() has to follow. */
int feed_adopt(struct feed *f, const struct order_params *params, struct shard_error *err);

/* ---- batches in host memory ---- */

/* Lend a slot that was taken to the caller, as a batch. */
void feed_lend(struct feed *f, uint32_t slot, struct shard_batch *batch);
/* ARGUMENT unless this batch is lent. */
int feed_check_lent(const struct feed *f, const struct shard_batch *batch, struct shard_error *err);
void feed_end_loan(struct feed *f, uint32_t slot); /* feed_give() is due, sooner or later */

/* ---- what it did ---- */

/* Sets all of *out: to zero what the feed does not count. */
void feed_stats(struct feed *f, struct shard_loader_stats *out);
bool feed_last_damage(struct feed *f, struct shard_error *out); /* false: there was none */

#endif
