/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.h - the records that one rank needs in an epoch, in the order of places: run after run, as
 * a disk likes to be read
 *
 * What a rank delivers in the order of positions, its pool fetches in this one.  Rows are counted
 * from 0.  A rank of a world that divides the lanes has its own lanes' runs, others have all; the
 * rest is everybody's.  With ORDER_PAD the rows that pad the last step stand at the end once more,
 * since they are the epoch's first and may be gone by then.  Pure arithmetic, and the same for
 * every epoch.
 */
#ifndef SHARD_ORDER_SHARE_H
#define SHARD_ORDER_SHARE_H

#include "libshard/order/order.h"

struct order_share {
	uint64_t record_count;
	uint64_t lanes_end, run_records; /* places below are in lanes, or positions that are somebody's */
	uint64_t lane_rows;	/* of ours */
	uint64_t whole_rows;	/* and the rest */
	uint64_t pad_rows;
	uint64_t pad_first;	/* position that the first of these repeats */
	uint32_t rank, stride, world; /* stride 1: all runs are ours */
};

/* `whole`: everything, whatever the rank. */
void order_share_init(struct order_share *s, const struct order_params *p, const struct order_rank *k, bool whole);
uint64_t order_share_rows(const struct order_share *s);

/* records[i] is that of row first + i. */
void order_share_fill(const struct order_share *s, const struct order *o, uint64_t first, uint64_t *records, size_t count);

/* The row where the record of a place stands, which is ours; of the n-th position that pads. */
uint64_t order_share_row(const struct order_share *s, uint64_t place);
uint64_t order_share_padding(const struct order_share *s, uint64_t n);

/* Rows of the band that a position of ours is in: [first, end). */
void order_share_band(const struct order_share *s, const struct order *o, uint64_t position, uint64_t *first, uint64_t *end);

/*
 * More rows than so many of ours that follow each other in an epoch, from the first one's band's
 * first to the last one's band's last, can span.
 */
uint64_t order_share_span(const struct order_share *s, const struct order_params *p, uint64_t records);
/*
 * Likewise of some at the end of an epoch and some at the beginning of the next, together with
 * those that the last step leaves.
 */
uint64_t order_share_wrap(const struct order_share *s, const struct order_params *p, uint64_t records);

#endif
