/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_buffer.h - arrays by the buffer protocol, __array_interface__, __cuda_array_interface__
 */
#ifndef SHARD_ARRAY_PY_BUFFER_H
#define SHARD_ARRAY_PY_BUFFER_H

#include "python/core/base/py_object.h"

int array_buffer(PyObject *self, Py_buffer *view, int flags);
PyObject *array_interface(PyObject *self, void *unused);
PyObject *array_to_numpy(PyObject *self, PyObject *args, PyObject *kwargs); /* its method __array__ */
PyObject *array_cuda_interface(PyObject *self, void *unused);

#endif
