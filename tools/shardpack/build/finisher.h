/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finisher.h - completes shards while the next one is being filled
 *
 * Making a shard durable and reading it back takes as long as the disk needs, with little for the
 * processor to do.  Threads do that, one shard each: while one waits until the disk has taken a
 * shard, another reads the one before.
 */
#ifndef SHARD_BUILD_FINISHER_H
#define SHARD_BUILD_FINISHER_H

#include <stdbool.h>

#include "shard_pack.h"
#include "tools/common/background.h"
#include "tools/shardpack/build/receipt.h"
#include "tools/shardpack/convert/account.h"

#define FINISHER_SHARDS 3 /* completed at a time: at fsync, being read, leaving a receipt; one more is being filled */

struct finishing {
	struct shard_writer *writer; /* lock: being completed; NULL: this place is free */
	bool taken;		     /* lock: by a thread */
	uint64_t shard_idx;	     /* lock */
	struct text lines;	     /* lock: for the receipt */
	bool has_result;	     /* lock: `result` waits to be entered into the account */
	struct receipt result;	     /* lock */
};

struct finisher {
	const char *state_dir;			 /* const after start */
	struct account *account;		 /* the caller's thread only */
	bool quarantines;			 /* const after start: how inputs are left out */
	struct background threads;		 /* asked: a shard was handed over; told: a shard is complete */
	struct finishing place[FINISHER_SHARDS]; /* lock */
	int code;				 /* lock: the first exit code that was not EXIT_DONE; said already */
};

int finisher_start(struct finisher *f, const char *state_dir, bool quarantines, struct account *account);

/*
 * Hand over a filled writer and the lines for its receipt; both are then the finisher's.
 * Waits until a shard before it is complete.  Returns the exit code of those that are.
 */
int finisher_put(struct finisher *f, struct shard_writer *writer, uint64_t shard_idx, struct text *lines);

/*
 * Report that a shard cannot be written; any thread may call this.  A full disk stops all threads
 * at once, so only the first failure is printed.  Returns the exit code.
 */
int finisher_fail(struct finisher *f, const struct shard_error *err);

/* EXIT_DONE, or the exit code of the first failure so far.  Does not wait. */
int finisher_check(struct finisher *f);

/* Wait for all and end the threads.  Returns the exit code. */
int finisher_stop(struct finisher *f);

#endif
