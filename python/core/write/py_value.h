/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_value.h - a value of Python, as bytes of a field
 *
 * Arrays must have the field's dtype and shape: nothing is converted that could be lost.  Numbers
 * of Python, alone or in lists, are checked one by one: integers must fit, floating-point numbers
 * are rounded once, to nearest, half to even.
 */
#ifndef SHARD_WRITE_PY_VALUE_H
#define SHARD_WRITE_PY_VALUE_H

#include "python/core/base/py_object.h"

/* Write a value to its place in the group buffers.  Else RecordError is set. */
bool value_put(const struct shard_schema *s, uint32_t field, PyObject *value, char *const *group,
	       unsigned long long record);

#endif
