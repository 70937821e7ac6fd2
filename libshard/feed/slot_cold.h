/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_cold.h - reads past the map: each thread keeps many of them under way at once
 */
#ifndef SHARD_FEED_SLOT_COLD_H
#define SHARD_FEED_SLOT_COLD_H

#include "libshard/feed/slot_row.h"

/*
 * Start to read a row.  If too many reads are under way, wait for one of them first.  The error may
 * be that of an earlier read.
 */
int slot_cold_put(struct scratch *scratch, const struct slot_row *row, bool direct, uint64_t epoch, uint64_t *checked,
		  struct shard_error *err);

/* Wait for all reads.  Call this after a failure too, before the slot gets another owner. */
int slot_cold_finish(struct scratch *scratch, uint64_t epoch, uint64_t *checked, struct shard_error *err);

bool slot_cold_has_uring(const struct scratch *scratch);
void slot_cold_close(struct scratch *scratch, bool inherited); /* the caller is a forked child */

#endif
