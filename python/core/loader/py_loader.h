/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader.h - an open loader: a lender, its dataset, and the next batch of it
 */
#ifndef SHARD_LOADER_PY_LOADER_H
#define SHARD_LOADER_PY_LOADER_H

#include "python/core/array/py_lender.h"
#include "python/core/dataset/py_dataset.h"

struct loader {
	struct lender lender;
	struct dataset *dataset;
	PyObject *source;	     /* None, or the selection or mixture that it delivers */
	struct shard_schema *schema; /* the dataset's, with fields as they are in batches */
	uint32_t max_held;
	unsigned int items;   /* the parts of a batch that are items of it: bits, see py_batch.c */
	int strings;	      /* true: strings are lists, else rows of bytes */
	int wide_tokens;      /* true: tokens are int64 */
	uint64_t place_count; /* how often a loop began, or was given its place; only the last loop may go on */
	uint64_t epoch;	      /* of the last batch, or of the place that it was given */
	uint64_t step;	      /* of the last batch */
	bool placed;	      /* the next loop begins where the loader stands; else with the next epoch */
	bool at_left;	      /* it still stands where the last loop was left, in the middle of an epoch */
	uint64_t left_taken;  /* batches that the last loop had when it was left; 0 if it was not left early */
};

/*
 * Batches will be on GPU number `gpu`, or with None on that of this stream.  Else an exception is
 * set, which says what to do in Python.
 */
bool loader_choose_device(struct loader *l, PyObject *gpu, PyObject *stream, struct shard_loader_options *o);

/*
 * A loop that was left early has ended its epoch: go to the start of the next one.  If that fails,
 * an exception is set.
 */
bool loader_end_left(struct loader *l);

/*
 * Wait for the next batch and take it.  SHARD_END at the end of an epoch; for any other status but
 * SHARD_OK an exception is set.
 */
int loader_next_batch(struct loader *l, struct shard_batch *b);

#endif
