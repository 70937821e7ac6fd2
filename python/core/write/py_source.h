/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_source.h - arrays of other libraries, as memory that can be read
 *
 * They are read by the buffer protocol (NumPy, bytes, JAX), __array_interface__ (Pillow, bfloat16
 * of NumPy) or DLPack (PyTorch), in this order.  Nothing is copied.  Their dtype and shape are not
 * trusted to fit: the caller compares them.
 */
#ifndef SHARD_WRITE_PY_SOURCE_H
#define SHARD_WRITE_PY_SOURCE_H

#include "python/core/base/py_view.h"

struct source {
	struct view as;
	Py_buffer buffer; /* holds the memory, if it has an obj; else `holder` does */
	PyObject *holder;
	char why[256]; /* if dtype is 0: what is wrong with the array */
};

int source_open(struct source *s, PyObject *value); /* 1, or 0 if that is no array, or -1 with an exception set */
void source_close(struct source *s);

/* Has it the field's dtype, and behind its first `axis` axes the field's shape? */
bool source_is(const struct source *s, const struct shard_field *f, int axis);

PyObject *source_describe(PyObject *self, PyObject *value); /* of the module: dtype and shape */

#endif
