/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_selection.h - the type libshard._core.Selection: some records of a dataset
 */
#ifndef SHARD_DATASET_PY_SELECTION_H
#define SHARD_DATASET_PY_SELECTION_H

#include "python/core/dataset/py_dataset.h"
#include "shard_select.h"

struct selection {
	PyObject_HEAD struct shard_selection *s;
};
extern PyTypeObject *selection_type; /* set by selection_init() */

int selection_init(PyObject *module);

#endif
