/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_number.h - what other libraries call dtypes, and elements as numbers of Python
 */
#ifndef SHARD_BASE_PY_NUMBER_H
#define SHARD_BASE_PY_NUMBER_H

#include "python/core/base/py_object.h"

const char *number_name(uint32_t dtype);    /* as NumPy has it: "uint8", "bfloat16", ... */
uint32_t number_named(const char *name);    /* the dtype of that name, or 0 */
const char *number_format(uint32_t dtype);  /* of the buffer protocol; NULL for bfloat16, which it does not have */
const char *number_typestr(uint32_t dtype); /* of __array_interface__ */

/* The numbers of a slice, as PySlice_Unpack has them; else an exception is set that says what it must be. */
bool number_slice(PyObject *slice, Py_ssize_t *first, Py_ssize_t *stop, Py_ssize_t *step);

PyObject *number_scalar(uint32_t dtype, const void *at); /* an int, float or bool */

#endif
