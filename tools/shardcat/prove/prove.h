/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove.h - proofs that orders are what format/ORDER.md says
 */
#ifndef SHARD_SHARDCAT_PROVE_PROVE_H
#define SHARD_SHARDCAT_PROVE_PROVE_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"
#include "shard_select.h"
#include "tools/common/cli.h"
#include "tools/common/progress.h"
#include "tools/shardcat/dataset/cat_dataset.h"

/*
 * fingerprints.c - find the record that a row's bytes belong to, and mark it as delivered
 *
 * Keeps the XXH3-128 of each record of a dataset: 16 bytes and one bit per record.  Records with
 * the same bytes cannot be told apart and need not be: k equal records must be delivered k times.
 */

struct fingerprint {
	uint8_t bytes[16];
};

struct fingerprints {
	uint64_t count;		/* records of the dataset */
	uint64_t wanted_count;	/* of these that an epoch has: all, or those of a selection */
	uint64_t *outside;	/* a bit for each record, set if it is not of the selection; NULL: there is none */
	struct fingerprint *of; /* [count] */
	uint64_t *delivered;	/* a bit each */
	uint64_t *by_value;	/* [count] record indices sorted by fingerprint; made when first needed */
};

/* Of one record: field f lies at rows[f] of its group or array. */
struct fingerprint fingerprint_of(const struct shard_schema *schema, const void *const rows[SHARD_FIELDS_MAX]);

/* Reads all records.  `s` may be NULL.  Returns an exit code; free in any case. */
int fingerprints_take(struct fingerprints *f, struct input *in, const struct shard_selection *s,
		      struct progress *progress);
void fingerprints_free(struct fingerprints *f);

/* Mark all records as not delivered, and those outside as delivered: nobody waits for them. */
void fingerprints_forget(struct fingerprints *f);
bool fingerprints_is_outside(const struct fingerprints *f, uint64_t record);
bool fingerprints_was_delivered(const struct fingerprints *f, uint64_t record);

/*
 * Find the record that has these bytes.  The answer is `named` if it has them and was not delivered
 * yet; else another record with these bytes that was not delivered; else one that was.  It is
 * `count` if no record has these bytes.  False if there is no memory.
 */
bool fingerprints_identify(struct fingerprints *f, const struct fingerprint *row, uint64_t named, uint64_t *record);
void fingerprints_deliver(struct fingerprints *f, uint64_t record);

/* ---- mix_file.c ---- */

struct mix_file {
	const char *path;
	char *text;
	uint32_t count;			 /* of sources */
	struct shard_mix_source *source; /* [count] */
	struct input **of;		 /* [count] the dataset of each, which other sources may share */
	struct input *input;		 /* [input_count] */
	uint32_t input_count;
	struct shard_mix *mix;
};

/* Returns an exit code.  Close in any case. */
int mix_file_open(struct mix_file *f, const char *path);
void mix_file_close(struct mix_file *f);

/* ---- mix_proof.c ---- */

/*
 * Prove the mixture in a file, for each of these worlds and resumed from world to world, over
 * `epochs` epochs, rounded up to whole blocks.  The options are those of all loaders.  Returns an
 * exit code, and says what it found.
 */
int mix_proof(const char *path, const struct shard_loader_options *options, const uint32_t *worlds,
	      uint32_t world_count, uint64_t epochs);

/*
 * order_options.c
 *
 * A verb's struct begins with a struct order_options, since offsets of a table that verbs share are
 * from the start.
 */

struct order_options {
	uint64_t seed, run_records, phase_unit_records, window_runs, lane_count;
	int shuffle; /* enum shard_shuffle */
};

extern const struct cli_option order_option_table[];

/* The loader's options, with the order filled in; the rest is zero, which means default. */
struct shard_loader_options order_loader_options(const struct order_options *o);

/* EXIT_DONE, or the mistake has been printed: runs, windows and lanes belong to windows only. */
int order_options_check(const struct cli_args *args, const struct order_options *o);

/* "windows of 40 runs of 128 records, 64 lanes, phase unit 1, seed 7" */
#define ORDER_TEXT_CHARS 256
const char *order_text(char out[ORDER_TEXT_CHARS], const struct shard_order_info *info);

/*
 * proof.c
 *
 * prove-order uses these parts: a job is one loader per rank, which make steps together; a tally
 * counts the rows that they delivered.  Findings are printed as they are made, the first few of
 * each kind.
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

#endif
