/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damage.h - the damage that was met last, for shard_loader_last_damage()
 *
 * Whether damage fails a batch or is repaired, the options decide; this only remembers it.
 */
#ifndef SHARD_LOAD_DAMAGE_H
#define SHARD_LOAD_DAMAGE_H

#include <pthread.h>
#include <stdbool.h>

#include "shard.h"

#define ROW_DAMAGED 128u /* a row's flag until it is repaired; no caller sees it */

struct damage {
	pthread_mutex_t lock;
	struct shard_error last; /* lock; status 0: none */
};

void damage_open(struct damage *d);
void damage_close(struct damage *d);
/* NULL: its thread had no room for the error. */
void damage_note(struct damage *d, const struct shard_error *problem);
/* Flag a row, to be repaired when the others are there.  Returns SHARD_OK. */
int damage_set_aside(struct damage *d, uint8_t *row_flags, const struct shard_error *problem);
bool damage_last(struct damage *d, struct shard_error *out); /* false: there was none */

#endif
