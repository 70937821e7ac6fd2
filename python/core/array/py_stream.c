/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_stream.c - streams of a GPU, as the numbers and objects that users and DLPack have for them
 *
 * Libraries destroy a stream with its object, and a handle of a stream that is gone must not reach
 * the driver.  So the object is kept where there is one.
 */
#include "python/core/array/py_array.h"

#define LEGACY	   1 /* the legacy default stream; the driver also takes 0 for it */
#define PER_THREAD 2 /* CU_STREAM_PER_THREAD */

/* The stream with this handle, if it is CuPy's current one: a new reference, or NULL. */
static PyObject *find_owner(void *handle)
{
	PyObject *name = PyUnicode_FromString("cupy.cuda"), *cuda = name ? PyImport_GetModule(name) : NULL;
	PyObject *current = cuda ? PyObject_CallMethod(cuda, "get_current_stream", NULL) : NULL;
	PyObject *number = current ? PyObject_GetAttrString(current, "ptr") : NULL;
	unsigned long long n = number ? PyLong_AsUnsignedLongLong(number) : 0;

	if (!number || PyErr_Occurred() || (void *)(uintptr_t)n != handle)
		Py_CLEAR(current);
	PyErr_Clear(); /* another CuPy than the one we know: then its user keeps the stream */
	Py_XDECREF(number);
	Py_XDECREF(cuda);
	Py_XDECREF(name);
	return current;
}

/* The number that an object has for its stream: a new reference, or NULL with an exception. */
static PyObject *number_of(PyObject *object)
{
	PyObject *pair, *number;

	if (PyObject_HasAttrString(object, "__cuda_stream__")) { /* a version, and the number */
		pair = PyObject_CallMethod(object, "__cuda_stream__", NULL);
		number = pair ? PySequence_GetItem(pair, 1) : NULL;
		Py_XDECREF(pair);
		return number;
	}
	if (PyObject_HasAttrString(object, "cuda_stream")) /* PyTorch */
		return PyObject_GetAttrString(object, "cuda_stream");
	if (PyObject_HasAttrString(object, "ptr")) /* CuPy */
		return PyObject_GetAttrString(object, "ptr");
	PyErr_SetString(PyExc_TypeError, "stream must be None, a number, or an object with __cuda_stream__, "
					 "cuda_stream or ptr");
	return NULL;
}

bool stream_take(PyObject *from, struct stream *out)
{
	bool is_number = from == Py_None || PyIndex_Check(from);
	PyObject *number = from == Py_None ? PyLong_FromLong(0) : is_number ? PyNumber_Index(from) : number_of(from);
	unsigned long long n = number ? PyLong_AsUnsignedLongLong(number) : 0;

	Py_XDECREF(number);
	if (PyErr_Occurred())
		return false;
	if (n == PER_THREAD) {
		PyErr_SetString(PyExc_BufferError, "stream 2 is another stream in each thread, and any thread may free "
						   "arrays; use 1, the legacy default stream, or a stream of your own");
		return false;
	}
	out->handle = n == LEGACY ? NULL : (void *)(uintptr_t)n;
	out->object = !out->handle ? NULL : is_number ? find_owner(out->handle) : Py_NewRef(from);
	return true;
}

void stream_drop(struct stream *s)
{
	Py_CLEAR(s->object);
}

unsigned long long stream_number(const struct stream *s)
{
	return s->handle ? (unsigned long long)(uintptr_t)s->handle : LEGACY;
}
