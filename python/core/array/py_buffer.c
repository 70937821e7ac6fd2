/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_buffer.c - views for who speaks the buffer protocol or __array_interface__
 */
#include "python/core/base/py_core.h"

int array_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct array *a = (struct array *)self;
	const char *why = array_lease_on_device(a)			      ? "this array is in the memory of a GPU; use __dlpack__ or __cuda_array_interface__"
			  : flags & PyBUF_WRITABLE			      ? "datasets are read-only: copy() it, or ask for a read-only buffer"
			  : !array_format(a->dtype)			      ? "the buffer protocol has no bfloat16; use __dlpack__"
			  : !(flags & PyBUF_STRIDES & ~PyBUF_ND) && !array_is_dense(a) ? "its rows are apart; ask for a buffer with strides, or copy() it"
									      : NULL;

	view->obj = NULL;
	if (why)
		PyErr_SetString(PyExc_BufferError, why);
	if (why || !array_is_reachable(a))
		return -1;
	view->buf = (void *)(uintptr_t)a->data;
	view->obj = Py_NewRef(self);
	view->itemsize = (Py_ssize_t)shard_dtype_bytes(a->dtype);
	view->len = array_item_count(a) * view->itemsize;
	view->readonly = 1;
	view->ndim = a->axis_count;
	view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)array_format(a->dtype) : NULL;
	view->shape = flags & PyBUF_ND ? a->shape : NULL;
	view->strides = flags & PyBUF_STRIDES & ~PyBUF_ND ? a->stride : NULL;
	view->suboffsets = NULL;
	view->internal = NULL;
	return 0;
}

PyObject *array_interface(PyObject *self, void *unused)
{
	struct array *a = (struct array *)self;
	PyObject *shape, *stride, *out = NULL;

	(void)unused;
	if (array_lease_on_device(a)) {
		PyErr_SetString(PyExc_AttributeError, "this array is in the memory of a GPU: it has no __array_interface__");
		return NULL;
	}
	if (!array_is_reachable(a))
		return NULL;
	shape = array_shape(self, NULL);
	stride = array_strides(self, NULL);
	if (shape && stride)
		out = Py_BuildValue("{s:s,s:O,s:O,s:(KO),s:i}", "typestr", array_typestr(a->dtype), "shape", shape, "strides", stride, "data",
				    (unsigned long long)(uintptr_t)a->data, Py_True, "version", 3);
	Py_XDECREF(shape);
	Py_XDECREF(stride);
	return out;
}
