/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_memory.h - aligned memory that lives as long as an array in it
 */
#ifndef SHARD_BASE_PY_MEMORY_H
#define SHARD_BASE_PY_MEMORY_H

#include "python/core/base/py_object.h"

#define MEMORY_ALIGN_BYTES 64 /* what arrays of other libraries have; JAX copies an array that has less */

struct memory {
	PyObject_HEAD void *data;
	size_t bytes; /* rounded up */
};

int memory_init(PyObject *module);
bool memory_is(PyObject *object);
struct memory *memory_new(size_t bytes); /* not zeroed; else NULL with an exception set */

#endif
