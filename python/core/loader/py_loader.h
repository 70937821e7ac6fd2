/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader.h - loaders, batches and transforms as Python objects
 */
#ifndef SHARD_PYTHON_CORE_LOADER_PY_LOADER_H
#define SHARD_PYTHON_CORE_LOADER_PY_LOADER_H

#include "python/core/array/py_array.h"
#include "python/core/base/py_memory.h"
#include "python/core/base/py_object.h"
#include "python/core/dataset/py_dataset.h"
#include "shard_gpu.h"

/* ---- py_loader.c ---- */

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

/* ---- py_batch.c ---- */

int batch_init(PyObject *module);
PyObject *batch_new(struct loader *l, const struct shard_batch *b); /* takes over the batch, also if it fails */

/* ---- py_loader_methods.c ---- */

extern PyMethodDef loader_methods[];

/* ---- py_loader_type.c ---- */

int loader_init(PyObject *module);

/*
 * py_pocket.c
 *
 * If a function returns false or NULL, an exception is set.
 */

/* Memory for the small fields, and how much of it is taken. */
struct pocket {
	struct memory *memory;
	size_t used;
};

bool pocket_open(struct pocket *p, const struct loader *l, const struct shard_batch *b);

/* Is the field delivered?  A string that is a list has no use for its length. */
bool pocket_wants(const struct loader *l, const struct shard_batch *b, uint32_t f);
PyObject *pocket_field(struct pocket *p, const struct loader *l, struct lease *lease, uint32_t f);

/*
 * A number for each row: any; the source, in the type of an index; and whether it holds the record
 * that the order names.
 */
PyObject *pocket_rows(struct pocket *p, uint32_t dtype, const void *data, uint32_t count);
PyObject *pocket_component(struct pocket *p, const struct shard_batch *b);
PyObject *pocket_valid(struct pocket *p, const struct shard_batch *b);

/* ---- py_transform.c ---- */

struct transform {
	struct shard_loader_transform t;
	struct shard_transform_options o;
	const char *as_stored[SHARD_FIELDS_MAX];
};

/*
 * Of a tuple (field, views, height, width, dtype, layout, crop, pixels, mean, std, flip, area,
 * ratio, as_stored), where mean and std have four numbers, area and ratio have two, and the last is
 * a tuple of names.  Names live as long as the tuple.  Else an exception is set.
 */
bool transform_take(PyObject *tuple, struct transform *out);

#endif
