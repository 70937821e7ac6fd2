/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_dlpack.h - arrays for libraries that speak DLPack
 */
#ifndef SHARD_ARRAY_PY_DLPACK_H
#define SHARD_ARRAY_PY_DLPACK_H

#include "python/core/base/py_object.h"

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);

#endif
