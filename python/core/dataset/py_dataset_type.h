/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_dataset_type.h - the type libshard._core.Dataset
 */
#ifndef SHARD_DATASET_PY_DATASET_TYPE_H
#define SHARD_DATASET_PY_DATASET_TYPE_H

#include "python/core/base/py_object.h"

extern PyTypeObject *dataset_type;
int dataset_init(PyObject *module);

#endif
