/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - the bytes of a step's rows, from a dataset to a slot
 */
#ifndef SHARD_LOAD_ROWS_H
#define SHARD_LOAD_ROWS_H

#include "libshard/load/block.h"

/*
 * Fill the slot with the records that it names.  Adds to *counts.  Rows of damaged records are left
 * flagged as ROW_DAMAGED, unless damage is to fail.
 */
int rows_fill(struct supply *supply, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
	      struct shard_error *err);

/* Fill one row once more, with the record that is named now.  Damage is an error. */
int rows_fill_one(struct supply *supply, struct scratch *scratch, struct slot *s, uint32_t row,
		  struct fill_counts *counts, struct shard_error *err);

#endif
