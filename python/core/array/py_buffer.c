/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_buffer.c - arrays by the buffer protocol, __array_interface__, __array__ and
 * __cuda_array_interface__
 */
#include "python/core/array/py_array.h"

#include "python/core/base/py_number.h"

int array_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct array *a = (struct array *)self;
	bool strided = flags & PyBUF_STRIDES & ~PyBUF_ND;
	const char *why = NULL;

	if (array_lease_on_device(a))
		why = "this array is in the memory of a GPU; use __dlpack__ or __cuda_array_interface__";
	else if (flags & PyBUF_WRITABLE)
		why = "datasets are read-only: copy() it, or ask for a read-only buffer";
	else if (!number_format(a->v.dtype))
		why = "the buffer protocol has no bfloat16; use __dlpack__";
	else if (!strided && !view_is_dense(&a->v))
		why = "its rows are apart; ask for a buffer with strides, or copy() it";
	view->obj = NULL;
	if (why)
		PyErr_SetString(PyExc_BufferError, why);
	if (why || !array_is_reachable(a) || !array_own(a))
		return -1;
	view->buf = (void *)(uintptr_t)a->v.data;
	view->obj = Py_NewRef(self);
	view->itemsize = view_item_bytes(&a->v);
	view->len = view_item_count(&a->v) * view->itemsize;
	view->readonly = 1;
	view->ndim = a->v.axis_count;
	view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)number_format(a->v.dtype) : NULL;
	view->shape = flags & PyBUF_ND ? a->v.shape : NULL;
	view->strides = strided ? a->v.stride : NULL;
	view->suboffsets = NULL;
	view->internal = NULL;
	return 0;
}

/* The part that __array_interface__ and __cuda_array_interface__ share. */
static PyObject *describe(const struct view *v, PyObject *read_only)
{
	return Py_BuildValue("{s:s,s:N,s:N,s:(KO),s:i}", "typestr", number_typestr(v->dtype), "shape", view_shape(v),
			     "strides", view_strides(v), "data", (unsigned long long)(uintptr_t)v->data, read_only,
			     "version", 3);
}

PyObject *array_interface(PyObject *self, void *unused)
{
	struct array *a = (struct array *)self;

	(void)unused;
	if (array_lease_on_device(a)) {
		PyErr_SetString(PyExc_AttributeError,
				"this array is in the memory of a GPU: it has no __array_interface__");
		return NULL;
	}
	return array_is_reachable(a) && array_own(a) ? describe(&a->v, Py_True) : NULL;
}

/*
 * NumPy itself takes one of the two above.  Other libraries look for this method to know an array
 * when they see one: without it, Hugging Face stores our attributes in the place of our numbers.
 */
PyObject *array_to_numpy(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"dtype", "copy", NULL};
	PyObject *dtype = Py_None, *copy = Py_None, *numpy, *out = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O", names, &dtype, &copy) ||
	    !array_is_readable((struct array *)self))
		return NULL;
	numpy = PyImport_ImportModule("numpy");
	if (numpy && copy == Py_None)
		out = PyObject_CallMethod(numpy, "asarray", "OO", self, dtype);
	else if (numpy) {
		PyObject *array = PyObject_GetAttrString(numpy, "array"), *pair = Py_BuildValue("(OO)", self, dtype);
		PyObject *option = Py_BuildValue("{s:O}", "copy", copy);

		out = array && pair && option ? PyObject_Call(array, pair, option) : NULL;
		Py_XDECREF(option);
		Py_XDECREF(pair);
		Py_XDECREF(array);
	}
	Py_XDECREF(numpy);
	return out;
}

PyObject *array_cuda_interface(PyObject *self, void *unused)
{
	struct array *a = (struct array *)self;
	struct lease *lease = array_lease_on_device(a);
	PyObject *dict, *stream;

	(void)unused;
	if (!lease) {
		PyErr_SetString(PyExc_AttributeError,
				"this array is in the memory of the CPU: it has no __cuda_array_interface__");
		return NULL;
	}
	if (!array_is_reachable(a))
		return NULL;
	lease_use_own(lease);
	/*
	 * Libraries refuse arrays that are read-only.  A batch on a GPU is a copy, which belongs to
	 * whoever holds it: kernels may write there, and the next batch overwrites it.
	 */
	dict = describe(&a->v, Py_False);
	stream = dict ? PyLong_FromUnsignedLongLong(stream_number(&lease->lender->stream)) : NULL;
	if (dict && (!stream || PyDict_SetItemString(dict, "stream", stream) < 0))
		Py_CLEAR(dict);
	Py_XDECREF(stream);
	return dict;
}
