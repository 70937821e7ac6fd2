/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filling.h - the shards that a build makes, filled one after the other
 *
 * For build.c, which says which shards these are.
 */
#ifndef SHARD_BUILD_FILLING_H
#define SHARD_BUILD_FILLING_H

#include <stdbool.h>
#include <stdint.h>

#include "shard_pack.h"
#include "tools/common/progress.h"
#include "tools/common/text.h"
#include "tools/shardpack/make/finisher.h"
#include "tools/shardpack/make/range.h"
#include "tools/shardpack/make/receipt.h"

struct claims;
struct fixed;
struct image_workers;
struct job;
struct record_workers;
struct warm;
struct workers;

struct build {
	const struct job *job;
	struct text provenance;
	bool *todo; /* [shard_count] which of them need room */
	struct range *ranges;
	uint64_t *shard_of_range;
	uint64_t todo_count, again_count;
	struct progress progress;
	struct finisher finisher;
	struct workers *workers;
	struct shard_turns *turns; /* one for each worker; the other threads that compute take them, too */

	struct claims *claims; /* where the next shards come from; NULL: all are known */
	bool is_complete;      /* with claims: no shard is missing */

	/* Of the kind of inputs that it is. */
	struct image_workers *images;
	struct record_workers *records;
	struct fixed *fixed; /* for what is wrong with a record */
	struct warm *warm;

	/* The shard that is being filled. */
	struct shard_writer *writer;	  /* NULL: it will not be published */
	struct shard_writer *next_writer; /* of the one behind it, opened early; or NULL */
	struct receipt receipt;		  /* its lines, and what they count */
	struct shard_tally *tally;
};

/*
 * Fill the shards of b->shard_of_range, and hand them to the finisher.  With claims there are none
 * at first: they are added as they are claimed, until none can be.  Then b->ranges has all that may
 * come.  Returns the exit code.
 */
int filling_run(struct build *b, uint64_t range_count);

#endif
