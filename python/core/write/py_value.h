/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_value.h - a value of Python, as bytes of a field
 *
 * Arrays must have the field's dtype and shape: nothing is converted that could be lost.  Numbers
 * of Python, alone or in lists, are checked one by one: whole numbers are stored exactly, and
 * others are rounded once, to nearest, half to even.  A number above the greatest of its field is
 * refused.
 */
#ifndef SHARD_WRITE_PY_VALUE_H
#define SHARD_WRITE_PY_VALUE_H

#include "python/core/base/py_object.h"

/* Write a value to its place in the group buffers.  Else RecordError is set. */
bool value_put(const struct shard_schema *s, uint32_t field, PyObject *value, char *const *group,
	       unsigned long long record);

/*
 * Is a length that was given beside its value that of the value, which is in the group buffers
 * already?  Else RecordError is set.
 */
bool value_check_length(const struct shard_schema *s, uint32_t field, PyObject *given, char *const *group,
			unsigned long long record);

#endif
