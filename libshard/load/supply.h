/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supply.h - what rows are filled from: a dataset, the ways to its bytes, and its decoded chunks
 *
 * All threads share it.
 */
#ifndef SHARD_LOAD_SUPPLY_H
#define SHARD_LOAD_SUPPLY_H

#include <pthread.h>

#include "libshard/load/layout.h"
#include "libshard/load/path.h"
#include "libshard/load/stages.h"

#define SUPPLY_STRIPES 256u
#define ROW_DAMAGED    128u /* a row's flag until it is repaired; no caller sees it */

struct supply { /* const after open, but for what the parts say of themselves */
	struct shard_dataset *ds; /* its readers appear when they are first needed */
	const struct layout *layout;
	uint32_t on_corrupt;	/* enum shard_on_corrupt */
	uint64_t guess_records; /* in a shard, if all are as the first */
	struct paths paths;
	struct stages stages;
	pthread_mutex_t lock;
	struct shard_error damage; /* lock: that was met last; status 0: none */
	/*
	 * A thread hashes a unit of this stripe.  The stripes are not the dataset's, since a forked child
	 * has that as well.
	 */
	atomic_bool stripe[SUPPLY_STRIPES];
};

/* What each thread has for itself. */
struct scratch {
	uint8_t *chunk;	   /* room for a decoded chunk of the longest kind */
	struct cold *cold; /* reads past the map; NULL: there were none yet */
};

struct supply_options {
	uint32_t path, on_corrupt;	   /* enum shard_path, enum shard_on_corrupt */
	uint64_t stage_bytes, rows_ahead; /* as stages_open() takes them */
};

int supply_open(struct supply *s, struct shard_dataset *ds, const struct layout *layout, const struct steps *steps,
		const struct supply_options *o, struct shard_error *err);
void supply_close(struct supply *s, bool inherited); /* inherited: by a child process */

/*
 * Flag a row as damaged, to be repaired when the others are there.  Returns SHARD_OK.  `problem` is NULL
 * where an earlier error was told already.
 */
int supply_set_aside(struct supply *s, uint8_t *row_flags, const struct shard_error *problem);
bool supply_last_damage(struct supply *s, struct shard_error *out); /* false: there was none */

#endif
