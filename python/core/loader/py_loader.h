/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader.h - loaders, batches and transforms as Python objects
 */
#ifndef SHARD_PYTHON_CORE_LOADER_PY_LOADER_H
#define SHARD_PYTHON_CORE_LOADER_PY_LOADER_H

#include "python/core/array/py_array.h"
#include "python/core/base/py_base.h"
#include "python/core/dataset/py_dataset.h"
#include "shard_gpu.h"

/* ---- py_loader.c ---- */

int loader_init(PyObject *module);

struct loader {
	struct lender lender;
	struct dataset *dataset;
	PyObject *source;		 /* None, or the selection or mixture that it delivers */
	struct shard_schema *schema;	 /* the dataset's, with fields as they are in batches */
	struct shard_episodes *episodes; /* NULL: no windows */
	uint32_t window;		 /* rows of a window; 0: there are none, and a row is a record */
	uint32_t max_held;
	unsigned int items;   /* the parts of a batch that are items of it: bits, see py_batch.c */
	int strings;	      /* true: strings are lists, else rows of bytes */
	int wide_tokens;      /* true: tokens are int64 */
	uint64_t place_count; /* how often a loop began, or was given its place; only the last loop may go on */
	uint64_t epoch;	      /* of the last batch, or of the place that it was given */
	uint64_t step;	      /* of the last batch */
	bool placed;	      /* the next loop begins where the loader stands; else with the next epoch */
	bool at_left;	      /* it still stands where the last loop was left, in the middle of an epoch */
	int wants_pins;	      /* true: the ring is to be page-locked before the first batch */
	bool told_of_pins;    /* the user was warned of what was refused */
	uint64_t left_taken;  /* batches that the last loop had when it was left; 0 if it was not left early */
};

/* ---- py_batch.c ---- */

int batch_init(PyObject *module);
PyObject *batch_new(struct loader *l, const struct shard_batch *b); /* takes over the batch, also if it fails */

#endif
