/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h - an epoch as real loaders deliver it, with every row identified by its bytes
 *
 * prove-order uses these parts: a job is one loader per rank, which make steps together; a tally
 * counts the rows that they delivered.  Findings are printed as they are made, the first few of
 * each kind.
 */
#ifndef SHARD_PROVE_PROOF_H
#define SHARD_PROVE_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/shardcat/prove/fingerprints.h"
#include "tools/shardcat/prove/order_options.h"

#define PROOF_RANKS_MAX 1024
#define PROOF_SLOTS	4 /* of each loader */

enum finding { DUPLICATE, MISSING, MISNAMED, FOREIGN, OUT_OF_STEP, FINDING_KINDS };

/* Of one epoch. */
struct tally {
	char name[256];	    /* "world 3, batch 16, epoch 0" */
	uint64_t epoch, at; /* the epoch, and the position that the next step must have */
	uint64_t delivered, padded, left, found[FINDING_KINDS];
};

struct proof {
	struct shard_loader_options loader; /* common to all */
	struct target t;		    /* whose fingerprints are taken */
	struct shard_dataset *dataset;	    /* the loaders' own handle, so that they read and check by themselves */
	struct fingerprints prints;
	struct progress progress;
	uint64_t epoch_count, bad_count; /* proven; of these with findings */
};

/* The loaders of a job: one for each rank. */
struct job {
	struct shard_loader *loader[PROOF_RANKS_MAX];
	uint32_t world, batch;
};

void proof_find(struct tally *y, enum finding kind, const char *fmt, ...) MESSAGE_PRINTF(3, 4);

/* Go on where `token` says, or begin if it is NULL.  Close in any case. */
int job_open(struct proof *p, struct job *j, uint32_t world, uint32_t batch, const char *token);
void job_close(struct job *j);

/* The job's token.  All ranks must have the same one. */
void job_token(const struct job *j, struct tally *y, char token[SHARD_TOKEN_BYTES]);

/* One step of all ranks.  *ended: it was the end of the epoch instead. */
int job_step(struct proof *p, struct tally *y, struct job *j, bool *ended);

/*
 * An epoch from its start to its end, in which the steps of any number of jobs lie.  `last` is the
 * one that ended it.
 */
void epoch_begin(struct proof *p, struct tally *y, uint64_t epoch);
int epoch_end(struct proof *p, struct tally *y, const struct job *last);

#endif
