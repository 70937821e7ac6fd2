/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_fill.h - the rows of a step: their records are brought from the dataset to a slot
 */
#ifndef SHARD_FEED_SLOT_FILL_H
#define SHARD_FEED_SLOT_FILL_H

#include "libshard/feed/block.h"

/*
 * Begin to fetch the records that a slot names, from shards that are mapped and not hot.  The slot
 * needs no memory.  Errors are left to the thread that fills a slot with these records.
 */
void slot_fetch(struct supply *supply, struct scratch *scratch, struct slot *s);

/*
 * Bring the records that the slot names, and add to *counts.  A damaged record is an error, or, if
 * the options say so, its row is only flagged as ROW_DAMAGED.
 */
int slot_fill(struct supply *supply, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
	      struct shard_error *err);

/* Bring another record to one row.  A damaged record is an error. */
int slot_fill_one(struct supply *supply, struct scratch *scratch, struct slot *s, uint32_t row,
		  struct fill_counts *counts, struct shard_error *err);

#endif
