/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_object.h - CPython's stable ABI, and references to objects that have a struct of our own
 *
 * The ABI is that of 3.11, so that one build serves every later version.  The types of this module
 * are plain: they own handles and memory, and report errors.  What a Python user sees is written in
 * Python on top of them, in libshard/.
 *
 * Lifetimes: an array holds its owner, which is memory, a lease or a dataset.  A lease holds its
 * loader, and a loader its dataset.  So close() only marks an object as closed; its handle goes
 * when nothing points into its memory any more.
 */
#ifndef SHARD_BASE_PY_OBJECT_H
#define SHARD_BASE_PY_OBJECT_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"

/* The macros of the stable ABI take a PyObject; these take a pointer to any object. */
static inline void *ref(void *object)
{
	return Py_NewRef((PyObject *)object);
}

static inline void unref(void *object) /* or NULL */
{
	Py_XDECREF((PyObject *)object);
}

/*
 * Make a type, and enter it in the module under this name.  If `name` is NULL, only this module
 * knows the type.
 */
PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec);

#endif
