/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - the endless row of steps: which records each has
 */
#ifndef SHARD_LOAD_STEPS_H
#define SHARD_LOAD_STEPS_H

#include "libshard/load/cursor.h"
#include "libshard/order/order.h"

struct order_share;

struct steps { /* changes only while nobody fills slots */
	struct order_params params; /* of epoch 0 */
	struct order_rank rank;	    /* of a whole epoch: first_position is 0 */
	const struct order_share *share; /* rows come in the order of this share; NULL: of positions */
	bool is_held;			 /* all epochs have the order of: */
	uint64_t held_epoch;
};

/* The order's parameters in an epoch. */
struct order_params steps_params(const struct steps *s, uint64_t epoch);
/* Is the epoch over at this place? */
bool steps_ended(const struct steps *s, const struct place *p);
/* The first place at or behind `p` that has a step. */
struct place steps_next(const struct steps *s, struct place p);
/* The rank for order_rank_*() in the part of an epoch that is left at `p`. */
struct order_rank steps_rank(const struct steps *s, const struct place *p);
/* Positions that a step takes, of all ranks; the position in the epoch where the step begins. */
uint64_t steps_records(const struct steps *s);
uint64_t steps_position(const struct steps *s, const struct place *p);

/* The records of a step and their flags, at most batch_records of each.  Returns how many they are. */
uint32_t steps_fill(const struct steps *s, const struct order *order, const struct place *p, uint64_t *record,
		    uint8_t *row_flags);

#endif
