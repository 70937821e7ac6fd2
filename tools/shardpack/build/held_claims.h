/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held_claims.h - the claims that this process holds, and the thread that renews them
 */
#ifndef SHARD_BUILD_HELD_CLAIMS_H
#define SHARD_BUILD_HELD_CLAIMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/shardpack/build/claim.h"

/* A range of shards.  But for the claim, it is the main thread's own. */
struct held {
	uint64_t range;
	struct claim claim; /* lock */
	uint64_t next, end; /* shards that were not handed out yet */
	uint64_t out_count; /* handed out, and not ended */
	bool failed;
};

struct held_claims { /* start it zeroed; only the main thread changes the list, with the lock */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t stopped; /* with lock: stop was set */
	bool stop;		/* lock */
	struct held **item;	/* lock */
	uint64_t count, room;	/* lock */
};

/* Start the thread.  Returns the exit code. */
int held_open(struct held_claims *l);

/* False if there is no memory. */
bool held_add(struct held_claims *l, struct held *h);

/* That of a range; NULL if it is not held. */
struct held *held_of(const struct held_claims *l, uint64_t range);

/* Give it back, marked if all of it is built, and free it. */
void held_release(struct held_claims *l, struct held *h, const char *state_dir, bool is_built);

/* Give back all, and end the thread. */
void held_close(struct held_claims *l, const char *state_dir);

#endif
