/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - the endless series of steps, and the records of each step
 */
#ifndef SHARD_STEPS_STEPS_H
#define SHARD_STEPS_STEPS_H

#include "libshard/feed/cursor.h"
#include "libshard/order/order.h"

struct mix_order;
struct order_share;
struct shard_dataset;
struct shard_selection;

/* Epochs that have the first records only: those that a dataset had before others were appended. */
struct steps_early {
	uint64_t last_epoch;	/* of these epochs, which begin with epoch 0 */
	uint64_t order_records; /* their records in the order; 0: there are no such epochs */
	uint64_t records;	/* of the dataset: as many, or more with a selection */
};

struct steps {			    /* changes only while no thread fills a slot */
	struct order_params params; /* of epoch 0 */
	struct order_rank rank;	    /* of a whole epoch, so first_position is 0 */
	/* The rows come in the order of this share.  NULL: in the order of positions. */
	const struct order_share *share;
	/* The numbers of the order are places in this selection.  NULL: they are records. */
	const struct shard_selection *selection;
	/* The steps are those of a mixture; record_count is the length of an epoch.  Or NULL. */
	struct mix_order *mix;
	struct steps_early early; /* not of mixtures and pools */
	bool is_held;		  /* every epoch has the order of held_epoch */
	uint64_t held_epoch;
};

static inline bool steps_is_early(const struct steps *s, uint64_t epoch)
{
	return s->early.order_records && epoch <= s->early.last_epoch;
}

/* Records of an epoch, of all ranks together. */
static inline uint64_t steps_epoch_records(const struct steps *s, uint64_t epoch)
{
	return steps_is_early(s, epoch) ? s->early.order_records : s->rank.record_count;
}

/* Returns the parameters of the order in an epoch.  A mixture has orders of its own. */
struct order_params steps_params(const struct steps *s, uint64_t epoch);
/* Is the epoch over at `p`? */
bool steps_ended(const struct steps *s, const struct place *p);
/* Returns the start of the epoch that follows, when the epoch of `p` is over there. */
struct place steps_epoch_after(const struct steps *s, const struct place *p);
/* Returns `p`, or the start of the next epoch if the epoch is over there. */
struct place steps_next(const struct steps *s, struct place p);
/* Returns the rank, for order_rank_*(), in the part of an epoch that was entered at `p`. */
struct order_rank steps_rank(const struct steps *s, const struct place *p);
/* Records of a run, which the order uses together; 0 if it has no runs. */
static inline uint64_t steps_run_records(const struct steps *s)
{
	return s->params.kind == ORDER_TWO_LEVELS ? s->params.run_records : 0;
}

/* Positions that a step takes, of all ranks together. */
uint64_t steps_records(const struct steps *s);
/* The position in the epoch where the step at `p` begins. */
uint64_t steps_position(const struct steps *s, const struct place *p);

/* Turn numbers of the order into records of the dataset, in place. */
void steps_select(const struct steps *s, uint64_t *record, size_t count);

/*
 * Write the rows of a step.  Returns how many there are.  Of a mixture, records are numbers of the
 * joined dataset.
 */
uint32_t steps_fill(const struct steps *s, const struct order *order, const struct place *p, struct step_rows rows);

/* Of a mixture: turn numbers of the joined dataset into those of each row's own dataset. */
void steps_name(const struct steps *s, struct step_rows rows, uint32_t count);

/* What the record of a row was chosen from. */
struct steps_source {
	const struct shard_selection *selection; /* NULL: all records */
	const struct shard_dataset *ds;		 /* NULL: the dataset of the feed */
	uint64_t base;				 /* its record 0 is number `base` of the dataset of the feed */
};
struct steps_source steps_source(const struct steps *s, struct step_rows rows, uint32_t row);

/* Of a mixture: as the steps of one component.  Returns false behind the last one. */
bool steps_of_component(const struct steps *s, uint32_t component, struct steps *out);

/* ---- what a disk shall begin to read while a step is filled ---- */

/*
 * A disk that is asked only when a step needs its records rests while they are hashed and copied.
 * So each step also names records of a later one.  This decides about speed only: a step that
 * nobody has named is read when it is filled.
 */
#define STEPS_AHEAD_ROWS 4u /* that there is room for in steps_ahead(), besides those of a batch */

/*
 * Returns how many records there are, all of the epoch of `p`.  In an order in windows they are of
 * runs of the next window: each step of a window names its part of them, and of each run one record
 * in `run_records` and the last one.  In other orders they are those of the step that is `distance`
 * steps behind `p`.
 */
uint32_t steps_ahead(const struct steps *s, const struct order *o, const struct place *p, uint64_t distance,
		     uint64_t run_records, struct step_rows rows);

#endif
