/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cold.h - one thread's reads past the map, many under way at once
 */
#ifndef SHARD_LOAD_COLD_H
#define SHARD_LOAD_COLD_H

#include "libshard/load/row.h"

/*
 * Start the read of a row, after waiting for others where too many are under way.  Fails with the
 * error of any of them.
 */
int cold_put(struct scratch *scratch, const struct row *row, bool direct, uint64_t epoch, uint64_t *checked,
	     struct shard_error *err);

/* Wait for all of them.  To be called also after a failure, before the slot is anybody else's. */
int cold_finish(struct scratch *scratch, uint64_t epoch, uint64_t *checked, struct shard_error *err);

bool cold_has_uring(const struct scratch *scratch);
void cold_close(struct scratch *scratch, bool inherited); /* inherited: by a child process, which has no memory to read to */

#endif
