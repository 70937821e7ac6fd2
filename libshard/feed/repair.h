/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.h - rows whose records are damaged become another record, or zeros
 */
#ifndef SHARD_FEED_REPAIR_H
#define SHARD_FEED_REPAIR_H

#include "libshard/feed/block.h"

/* Substitute or mask the rows that are flagged as ROW_DAMAGED, as the options say. */
int repair_rows(struct supply *supply, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		struct shard_error *err);

#endif
