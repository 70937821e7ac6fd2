/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finisher.h - completes shards while the next one is being filled
 *
 * A filled shard must be made durable, read back and hashed.  Threads do that, each with one shard.
 */
#ifndef SHARD_BUILD_FINISHER_H
#define SHARD_BUILD_FINISHER_H

#include <stdbool.h>

#include "libshard/base/task.h"
#include "shard_pack.h"
#include "tools/shardpack/make/receipt.h"

struct job;

#define FINISHER_SHARDS 3 /* each has a thread; one more shard is being filled */

struct finishing {
	struct shard_writer *writer; /* lock: being completed; NULL: this place is free */
	bool taken;		     /* lock: by a thread */
	uint64_t shard_idx;	     /* lock */
	struct receipt receipt;	     /* lock: its lines and counts */
	bool is_left;		     /* lock: its temporary file is gone, as `why` says */
	struct shard_error why;	     /* lock */
	bool has_result;	     /* lock: `result` waits to be entered into the account, or it is left */
	struct receipt result;	     /* lock */
};

struct finisher {
	const struct job *job;			 /* const after start; its account: the caller's thread only */
	struct shard_turns *turns;		 /* const after start */
	struct task threads;			 /* asked: a shard was handed over; told: a shard is complete */
	struct finishing place[FINISHER_SHARDS]; /* lock */
	int code;				 /* lock: the first exit code that was not EXIT_DONE; said already */
	uint64_t other_count;			 /* lock: shards that were built again and became others */
	/*
	 * NULL, or told of each shard that was published, or whose temporary file is gone, in the
	 * caller's thread; set after start.  False: of the latter nobody else has it.
	 */
	bool (*ended)(void *context, uint64_t shard_idx, bool published);
	void *context;
};

/* The threads take one of `turns` while they compute. */
int finisher_start(struct finisher *f, const struct job *job, struct shard_turns *turns);

/*
 * Hand over a filled writer and the lines and counts for its receipt; both are then the finisher's.
 * Waits until there is a place.  Returns the exit code of what was completed so far.
 */
int finisher_put(struct finisher *f, struct shard_writer *writer, uint64_t shard_idx, struct receipt *receipt);

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
