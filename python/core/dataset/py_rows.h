/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_rows.h - several records as a dict of arrays, which are read when they are looked into
 */
#ifndef SHARD_DATASET_PY_ROWS_H
#define SHARD_DATASET_PY_ROWS_H

#include "python/core/dataset/py_dataset.h"

int rows_init(PyObject *module);

PyObject *rows_slice(struct dataset *d, uint64_t first, int64_t step, uint64_t count);
PyObject *rows_gather(struct dataset *d, uint64_t *idx, size_t count); /* takes over `idx`, of PyMem_Malloc() */

#endif
