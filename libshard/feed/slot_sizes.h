/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_sizes.h - how large the images of a slot are, if they differ in size
 */
#ifndef SHARD_FEED_SLOT_SIZES_H
#define SHARD_FEED_SLOT_SIZES_H

#include "libshard/feed/slot.h"
#include "libshard/feed/supply.h"

/*
 * Check the sizes of rows that are filled, and note them in the slot.  Later code makes addresses
 * of them without a check.  A size that is not that of its pixels is damage.  With `strict` it is
 * an error, else its row is flagged as ROW_DAMAGED.
 */
int slot_sizes_take(struct supply *supply, struct slot *s, uint32_t first, uint32_t end, bool strict,
		    struct shard_error *err);

#endif
