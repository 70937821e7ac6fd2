/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove.h - proofs that orders are what format/ORDER.md says
 */
#ifndef SHARD_SHARDCAT_PROVE_PROVE_H
#define SHARD_SHARDCAT_PROVE_PROVE_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"
#include "tools/common/cli.h"
#include "tools/common/progress.h"
#include "tools/shardcat/dataset/cat_dataset.h"

/* ---- proof.c: an epoch as real loaders deliver it ---- */

/*
 * The hash of a record's contents, its fingerprint, tells which record a row's bytes belong to.  Each
 * record of a dataset takes 16 bytes and one bit.  Records with the same bytes cannot be told apart
 * and need not be: k equal records must be delivered k times.
 */

struct fingerprints {
	uint64_t count;		 /* records of the dataset */
	uint64_t wanted_count;	 /* of these that an epoch has: all, or those of a selection */
	uint64_t *outside;	 /* a bit for each record, set if it is not of the selection; NULL: there is none */
	struct content_hash *of; /* [count] */
	uint64_t *delivered;	 /* a bit each */
	uint64_t *by_value;	 /* [count] record indices sorted by fingerprint; made when first needed */
};

/* Reads all records.  `s` may be NULL.  Returns an exit code; free in any case. */
int fingerprints_take(struct fingerprints *f, struct input *in, const struct shard_selection *s,
		      struct progress *progress);
void fingerprints_free(struct fingerprints *f);

/*
 * A job is one loader per rank, which make steps together; a tally counts the rows that they
 * delivered.  Findings are printed as they are made, the first few of each kind.
 */

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
	struct input in;		    /* whose fingerprints are taken */
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

/* ---- mix_proof.c: the same for a mixture ---- */

/*
 * Prove the mixture in a file, for each of these worlds and resumed from world to world, over
 * `epochs` epochs, rounded up to whole blocks.  The options are those of all loaders.  Returns an
 * exit code, and says what it found.
 */
int mix_proof(const char *path, const struct shard_loader_options *options, const uint32_t *worlds,
	      uint32_t world_count, uint64_t epochs);

#endif
