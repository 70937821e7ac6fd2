/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixing.h - how well batches are mixed, measured against batches drawn at random without
 * replacement
 *
 * Fed with the order of one or more epochs, batch by batch.  Ideals are exact expectations, not
 * simulations.  Pure but for memory: no file, no terminal.
 */
#ifndef SHARD_PROVE_MIXING_H
#define SHARD_PROVE_MIXING_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"

enum measure {
	MIX_CLASSES,  /* distinct classes in a batch */
	MIX_VARIANCE, /* of the class counts of a batch, as a multiple of the ideal's: pooled over the classes */
	MIX_RUNS,     /* distinct stretches of run_records stored neighbours */
	MIX_SHARDS,   /* distinct shards */
	MIX_DISTANCE, /* mean |record[i + 1] - record[i]| */
	MIX_PAIRS,    /* pairs that were in one batch in the epoch before, too: as a multiple of the ideal's */
	MEASURES,
};

/* The dataset; borrowed until mixing_close(). */
struct mixing_data {
	uint64_t record_count;
	const uint32_t *class_of; /* [record_count], or NULL: no classes */
	uint32_t class_count;
	const uint64_t *class_records; /* [class_count] */
	const uint64_t *shard_first;   /* [shard_count + 1] first record of each; then the record count */
	uint64_t shard_count;
	uint64_t run_records; /* 0: there are no runs */
	uint32_t batch_records;
	uint64_t batch_count; /* that will be fed, of all epochs: known before, so that errors can be estimated */
};

struct mixing_result {
	bool known; /* else it does not apply to these data */
	double measured, ideal;
	double error; /* standard error of `measured`; neighbouring batches may resemble each other */
};

struct mixing;

struct mixing *mixing_open(const struct mixing_data *d); /* NULL: no memory */
void mixing_close(struct mixing *m);
void mixing_batch(struct mixing *m, uint64_t epoch, const uint64_t *record);
struct mixing_result mixing_result(const struct mixing *m, enum measure what);

/* ---- predictions for a windowed order ---- */

/*
 * Are records that lie near each other of one class?  The correlation of the classes of two records
 * in `run` neighbours: 0 if the records are stored in random order, 1 if runs have one class each.
 */
double mixing_run_correlation(const struct mixing_data *d, uint64_t run_records);

/*
 * The average of MIX_VARIANCE with windows, by arithmetic alone: from how often two records of a
 * batch come from one run, and the correlation of those.  With L = 1, it is 1 + (B - 1)(r - 1) / (W
 * - 1) in a large dataset of pure runs.
 */
double mixing_predict_variance(const struct mixing_data *d, const struct shard_order_info *order,
			       double run_correlation);

#endif
