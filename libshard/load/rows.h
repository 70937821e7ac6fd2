/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - the rows of a step: their records are brought from the dataset to a slot
 */
#ifndef SHARD_LOAD_ROWS_H
#define SHARD_LOAD_ROWS_H

#include "libshard/load/block.h"

/*
 * Bring the records that the slot names, and add to *counts.  A damaged record is an error, or, if
 * the options say so, its row is only flagged as ROW_DAMAGED.
 */
int rows_fill(struct supply *supply, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
	      struct shard_error *err);

/* Bring another record to one row.  A damaged record is an error. */
int rows_fill_one(struct supply *supply, struct scratch *scratch, struct slot *s, uint32_t row,
		  struct fill_counts *counts, struct shard_error *err);

#endif
