/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_array_type.h - the type libshard.Array
 */
#ifndef SHARD_ARRAY_PY_ARRAY_TYPE_H
#define SHARD_ARRAY_PY_ARRAY_TYPE_H

#include "python/core/base/py_object.h"

int array_init(PyObject *module);
PyObject *array_unpickle(PyObject *self, PyObject *args); /* _array(dtype, shape, bytes) of the module */

#endif
