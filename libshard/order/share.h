/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.h - the records that one rank needs in an epoch, in the order of places: run after run, as
 * a disk likes to be read
 *
 * A rank delivers records in the order of positions, and its pool fetches them in the order of
 * places.  A row is the number of a record in the share, from 0.  If the world size divides the
 * number of lanes, a rank's share holds the runs of its own lanes; otherwise it holds all runs.
 * The rest, behind the last full round of lanes, is in the share of each rank.
 *
 * With ORDER_PAD the last step repeats the first records of the epoch.  The pool may have dropped
 * those by then, so the share holds them once more at its end.  All of this is pure arithmetic, and
 * the same for each epoch.
 */
#ifndef SHARD_ORDER_SHARE_H
#define SHARD_ORDER_SHARE_H

#include "libshard/order/order.h"

struct order_share {
	uint64_t record_count;
	uint64_t lanes_end, run_records; /* places from lanes_end on are the rest */
	uint64_t lane_rows;		 /* rows of runs */
	uint64_t whole_rows;		 /* lane_rows, and the rows of the rest */
	uint64_t pad_rows;		 /* rows that repeat records, behind whole_rows */
	uint64_t pad_first;		 /* the position that the first of the pad_rows repeats */
	uint32_t rank, stride, world;	 /* stride 1: the share holds all runs */
};

/* `whole`: the share holds the whole dataset, on each rank. */
void order_share_init(struct order_share *s, const struct order_params *p, const struct order_rank *k, bool whole);
uint64_t order_share_rows(const struct order_share *s);

/* Set records[i] to the record of row first + i. */
void order_share_fill(const struct order_share *s, const struct order *o, uint64_t first, uint64_t *records,
		      size_t count);

/* The row of the record at `place`, which must be in the share. */
uint64_t order_share_row(const struct order_share *s, uint64_t place);
/* The row of the n-th position that pads the last step. */
uint64_t order_share_padding(const struct order_share *s, uint64_t n);

/* Rows [first, end) of the band that holds `position`, which this rank delivers. */
void order_share_band(const struct order_share *s, const struct order *o, uint64_t position, uint64_t *first,
		      uint64_t *end);

/*
 * An upper limit for the rows that `records` consecutive records of this rank span: from the first
 * row of the first one's band to the last row of the last one's band.
 */
uint64_t order_share_span(const struct order_share *s, const struct order_params *p, uint64_t records);

#endif
