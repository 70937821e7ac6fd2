/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claims.h - which shards are built next, where several processes share a plan
 *
 * Each shard is claimed by a file in .shardpack: claim.h.  A worker begins at its own place, goes
 * around once, and claims what is missing and not claimed.  When it has come around it waits for
 * the others, and takes over what they leave.
 */
#ifndef SHARD_BUILD_CLAIMS_H
#define SHARD_BUILD_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct claims;

/*
 * Look at what is there and start to renew claims.  job->worker says where to begin.  Close it all
 * the same if this fails.  Returns the exit code, and so do the next two.
 */
int claims_open(struct claims **out, const struct job *job);

/* The next shard to build, claimed; *got is false if none can be claimed at the moment. */
int claims_next(struct claims *c, uint64_t *shard_idx, bool *got);

/*
 * All that was handed out has ended.  Wait until a shard can be claimed; *more is false if none
 * ever will be, or, with job->no_wait, if none can be now.
 */
int claims_wait(struct claims *c, bool *more);

/* The digits for the temporary file of a shard that was handed out; others remove it by them. */
const char *claims_temp_id(const struct claims *c, uint64_t shard_idx);

/*
 * A shard that was handed out was published, or its temporary file is gone; or it cannot be built
 * from these inputs.  claims_ended() is false if nobody published it, and its claim is still ours.
 */
bool claims_ended(void *claims, uint64_t shard_idx, bool published);
void claims_failed(struct claims *c, uint64_t shard_idx);

/* The shards that are missing, and of these the ones that are in nobody's claim, for estimates. */
bool claims_is_missing(const struct claims *c, uint64_t shard_idx);
int claims_mark_open(struct claims *c, bool *todo);

/* The end: say what was built, and what is missing.  Returns the exit code. */
int claims_tell(struct claims *c, bool *is_complete);

/* Give back all that is held.  NULL is nothing. */
void claims_close(struct claims *c);

#endif
