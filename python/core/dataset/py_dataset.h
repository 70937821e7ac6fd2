/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_dataset.h - datasets, records, selections and mixtures as Python objects
 */
#ifndef SHARD_PYTHON_CORE_DATASET_PY_DATASET_H
#define SHARD_PYTHON_CORE_DATASET_PY_DATASET_H

#include "python/core/base/py_base.h"
#include "shard_inspect.h"

/* ---- py_dataset.c ---- */

struct dataset {
	PyObject_HEAD struct shard_dataset *ds; /* first, as in struct map_owner */
	PyObject *path;
	PyObject *parts;		  /* of a concatenation: a tuple of datasets, which outlive it; else NULL */
	PyObject *name[SHARD_FIELDS_MAX]; /* of fields */
	uint64_t record_count;
	uint64_t *first_record, shard_count; /* of each shard, and of the end; NULL before they are needed */
	struct key_place *key_place;	     /* [key_count], by hash; NULL before they are needed */
	size_t key_count;
	bool closed;
};

extern PyTypeObject *dataset_type; /* set by dataset_init() */
int dataset_init(PyObject *module);

bool dataset_is_open(const struct dataset *d); /* else ClosedError is set */

/* A converter of PyArg_ParseTuple(): a dataset that is open, to a struct dataset *. */
int dataset_converter(PyObject *object, void *out);

/*
 * Does the dataset have too many shards for arrays to be views of them?  Each view keeps the
 * map of its shard, and a process may have 65,530 maps by default.
 */
int dataset_is_copied(struct dataset *d, bool *copied, struct shard_error *err);

/*
 * The shard of a record, its number in that, and the number of the record behind the shard's last.
 */
int dataset_find(struct dataset *d, uint64_t idx, struct shard_reader **reader, uint64_t *within, uint64_t *shard_end,
		 struct shard_error *err);

/* The part of a concatenation that has a record; *idx becomes its number there. */
struct dataset *dataset_part(const struct dataset *d, uint64_t *idx);

/* ---- py_mix.c ---- */

struct mix {
	PyObject_HEAD struct shard_mix *m;
	PyObject *sources; /* a tuple: datasets and selections, which outlive it */
};
extern PyTypeObject *mix_type; /* set by mix_type_init() */

int mix_type_init(PyObject *module);

/*
 * py_record.c - a record as a dict of values: one, a slice of neighbours, or any indices
 */

PyObject *record_at(struct dataset *d, uint64_t idx);

/* ---- py_record.c: several records ---- */

int rows_init(PyObject *module);

PyObject *rows_slice(struct dataset *d, uint64_t first, int64_t step, uint64_t count);
PyObject *rows_gather(struct dataset *d, uint64_t *idx, size_t count); /* takes over `idx`, of PyMem_Malloc() */

/*
 * py_selection.c - the type libshard._core.Selection: some records of a dataset
 */

struct selection {
	PyObject_HEAD struct shard_selection *s;
};
extern PyTypeObject *selection_type; /* set by selection_init() */

int selection_init(PyObject *module);

/* A converter of PyArg_ParseTuple(): a selection or None, to a struct shard_selection *. */
int selection_converter(PyObject *object, void *out);

#endif
