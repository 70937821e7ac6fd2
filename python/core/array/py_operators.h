/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_operators.h - arrays in expressions: what NumPy makes of them, where NumPy is there
 *
 * An array keeps its type, since that counts what lies in a loader's memory, and guards what lies
 * in a file.  So it has NumPy's operators and methods by handing them an array of NumPy, which
 * looks into the same memory where that is safe.
 */
#ifndef SHARD_ARRAY_PY_OPERATORS_H
#define SHARD_ARRAY_PY_OPERATORS_H

#include "python/core/array/py_array.h"

/*
 * An array of NumPy for reading: of the same memory, or of a copy if that is the map of a file.
 * bfloat16, which NumPy does not have, is float32 there.  NULL with an exception set.
 */
PyObject *array_numpy(struct array *a);

PyObject *array_compare(PyObject *self, PyObject *other, int op);
PyObject *array_attribute(PyObject *self, PyObject *name); /* ours, else that of NumPy's array */

extern PyType_Slot array_operators[]; /* up to the one whose slot is 0 */

#endif
