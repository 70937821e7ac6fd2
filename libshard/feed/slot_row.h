/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_row.h - a record of a raw group on its way to a row of a slot
 */
#ifndef SHARD_FEED_SLOT_ROW_H
#define SHARD_FEED_SLOT_ROW_H

#include "libshard/feed/supply.h"
#include "shard_pack.h"

struct slot_row {
	struct supply *supply;
	const struct layout *layout; /* by which the record comes to the slot */
	struct shard_reader *r;
	uint64_t shard, inside, row;
	uint32_t group;
	uint8_t *flags; /* of the row; NULL: damage is an error */
	uint8_t *slot;
	bool fresh;   /* the bytes have just come from a device */
	bool hot;     /* all of the shard lies in memory; else what fetch.h has fetched with the record */
	uint8_t *dst; /* where the record belongs; NULL: its fields belong to arrays of the slot */
};

/*
 * Copy the record from src to its place, and hash its unit if that is due.  src may be dst: then
 * the record is there already.
 */
int slot_row_land(const struct slot_row *row, const uint8_t *src, uint64_t *checked, struct shard_error *err);

#endif
