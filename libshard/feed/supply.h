/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supply.h - where the rows of slots come from: a dataset, its paths, and its decoded chunks
 *
 * All threads of a crew share one supply.
 */
#ifndef SHARD_FEED_SUPPLY_H
#define SHARD_FEED_SUPPLY_H

#include <pthread.h>

#include "libshard/feed/layout.h"
#include "libshard/feed/path.h"
#include "libshard/feed/stages.h"
#include "libshard/io/file.h"

#define SUPPLY_STRIPES 256u
#define ROW_DAMAGED    128u /* a flag of rows that are yet to be repaired; no caller sees it */

struct supply {
	struct shard_dataset *ds;    /* const after open, as: */
	const struct layout *layout; /* of the rows; how records come there is in `layouts` */
	struct layouts layouts;
	const struct steps *steps;
	uint32_t on_corrupt;	/* enum shard_on_corrupt */
	uint64_t guess_records; /* in a shard, if all shards are as long as the first */
	struct paths paths;
	struct stages stages;

	pthread_mutex_t lock;
	struct shard_error damage; /* lock: the last damage; status 0: there was none */
	/*
	 * Is a thread hashing a unit of this stripe?  A forked child shares the dataset, so the
	 * stripes cannot be part of that.
	 */
	atomic_bool stripe[SUPPLY_STRIPES];
};

/* What is counted while slots are filled. */
struct fill_counts {
	uint64_t checked_units, decoded_chunks, direct_bytes, pread_bytes, substituted, masked;
	bool uring; /* direct_bytes and pread_bytes came by io_uring */
};

/* What each thread has for itself. */
struct scratch {
	uint8_t *chunk;	   /* room for the longest decoded chunk */
	uint8_t *records;  /* on their way to a batch whose images are transformed; or NULL */
	void *transform;   /* the memory that transform_cpu() works in; or NULL */
	struct cold *cold; /* reads past the map; NULL: there were none yet */
	uint64_t faults;   /* scratch_faults() when it last decoded a chunk */
	uint64_t awaited;  /* major faults of the thread in paths_await() */
	bool has_cold;	   /* it has met rows of shards that are not hot */
};

/* How often this thread has waited for pages that were thought to be there. */
static inline uint64_t scratch_faults(const struct scratch *s)
{
	return file_major_faults() - s->awaited;
}

/* `rows_ahead` is that of stages_open(). */
int supply_open(struct supply *s, struct shard_dataset *ds, const struct shard_loader_options *o,
		const struct layout *layout, const struct steps *steps, uint64_t rows_ahead, struct shard_error *err);
void supply_close(struct supply *s, bool inherited); /* inherited: the caller is a forked child */

/*
 * Flag a damaged row.  It is repaired when the other rows are there.  `problem` may be NULL, if
 * another error has been reported before.  Returns SHARD_OK.
 */
int supply_set_aside(struct supply *s, uint8_t *row_flags, const struct shard_error *problem);
bool supply_last_damage(struct supply *s, struct shard_error *out); /* false: there was no damage */

#endif
