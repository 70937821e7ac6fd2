/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_array_type.c - the type libshard.Array
 *
 * It has what another library needs to take the bytes without a copy, and what a person needs to
 * look at them.
 */
#include "python/core/array/py_array_type.h"

#include "python/core/array/py_array.h"
#include "python/core/array/py_buffer.h"
#include "python/core/array/py_dlpack.h"
#include "python/core/base/py_errors.h"
#include "python/core/base/py_map.h"
#include "python/core/base/py_number.h"

static void dealloc(PyObject *self)
{
	struct array *a = (struct array *)self;
	PyTypeObject *type = Py_TYPE(self);

	if (a->field >= 0)
		((struct lease *)a->owner)->view_count[a->field]--;
	Py_DECREF(a->owner);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* ---- numbers ---- */

/* The first element of a view of the array's memory. */
static PyObject *number_at(const struct array *a, const struct view *v)
{
	return a->field < 0 ? map_number(a->owner, v->dtype, v->data) : number_scalar(v->dtype, v->data);
}

static PyObject *tolist(PyObject *self, PyObject *unused)
{
	struct array *a = (struct array *)self, *copy;
	PyObject *list;

	(void)unused;
	if (!array_is_readable(a))
		return NULL;
	copy = array_is_mapped(a) ? array_copy(a) : ref(a);
	list = copy ? view_list(&copy->v) : NULL;
	unref(copy);
	return list;
}

static PyObject *item(PyObject *self, PyObject *unused)
{
	struct array *a = (struct array *)self;

	(void)unused;
	if (!array_is_readable(a))
		return NULL;
	return view_item_count(&a->v) == 1
		       ? number_at(a, &a->v)
		       : fail_argument("item() needs an array of one element; this has %zd", view_item_count(&a->v));
}

/* ---- parts ---- */

static PyObject *part(const struct array *a, Py_ssize_t first, Py_ssize_t step, Py_ssize_t count)
{
	struct view v = a->v;

	v.data += first * v.stride[0];
	v.shape[0] = count;
	v.stride[0] *= count < 2 ? 1 : step; /* a step that is not taken may be any number */
	return (PyObject *)array_new(a->owner, a->field, &v);
}

static PyObject *element(const struct array *a, Py_ssize_t i)
{
	struct view row = view_row(&a->v, i);

	return row.axis_count ? (PyObject *)array_new(a->owner, a->field, &row) : number_at(a, &row);
}

static PyObject *sq_item(PyObject *self, Py_ssize_t i)
{
	struct array *a = (struct array *)self;

	if (!(a->v.axis_count == 1 ? array_is_readable(a) : array_is_reachable(a)))
		return NULL;
	if (!a->v.axis_count || i < 0 || i >= a->v.shape[0]) {
		PyErr_Format(PyExc_IndexError, "index %zd is out of range; the first axis has %zd", i,
			     a->v.axis_count ? a->v.shape[0] : 0);
		return NULL;
	}
	return element(a, i);
}

static PyObject *subscript(PyObject *self, PyObject *key)
{
	struct array *a = (struct array *)self;
	Py_ssize_t first, stop, step, i;

	if (!a->v.axis_count)
		return fail_argument("an array without axes cannot be indexed; item() returns its value");
	if (PySlice_Check(key)) {
		if (PySlice_Unpack(key, &first, &stop, &step) < 0)
			return NULL;
		i = PySlice_AdjustIndices(a->v.shape[0], &first, &stop, step);
		return part(a, first, step, i);
	}
	if (!PyIndex_Check(key) || PyBool_Check(key)) { /* to NumPy a bool is a mask */
		PyErr_SetString(PyExc_TypeError, "an index must be a number or a slice of the first axis; "
						 "index numpy.asarray(array) instead");
		return NULL;
	}
	i = PyNumber_AsSsize_t(key, PyExc_IndexError);
	if (i == -1 && PyErr_Occurred())
		return NULL;
	return sq_item(self, i < 0 ? i + a->v.shape[0] : i);
}

static Py_ssize_t length(PyObject *self)
{
	struct array *a = (struct array *)self;

	if (a->v.axis_count)
		return a->v.shape[0];
	PyErr_SetString(PyExc_TypeError, "an array without axes has no length");
	return -1;
}

static PyObject *copy(PyObject *self, PyObject *unused)
{
	(void)unused;
	return array_is_readable((struct array *)self) ? (PyObject *)array_copy((struct array *)self) : NULL;
}

static PyObject *tobytes(PyObject *self, PyObject *unused)
{
	struct array *a = (struct array *)self;
	Py_ssize_t bytes = view_item_count(&a->v) * view_item_bytes(&a->v);
	PyObject *out = array_is_readable(a) ? PyBytes_FromStringAndSize(NULL, bytes) : NULL;

	(void)unused;
	if (out && !array_read(a, &a->v, PyBytes_AsString(out)))
		Py_CLEAR(out);
	return out;
}

/* By default Python would compare addresses, so that equal arrays were not equal. */
static PyObject *compare(PyObject *self, PyObject *other, int op)
{
	(void)self;
	(void)other;
	if (op != Py_EQ && op != Py_NE)
		return Py_NewRef(Py_NotImplemented);
	PyErr_SetString(PyExc_TypeError, "arrays of libshard are not compared by == and !=; "
					 "compare numpy.asarray(array), or array.tolist()");
	return NULL;
}

/* ---- attributes ---- */

static PyObject *get_shape(PyObject *self, void *unused)
{
	(void)unused;
	return view_shape(&((struct array *)self)->v);
}

static PyObject *get_strides(PyObject *self, void *unused)
{
	(void)unused;
	return view_strides(&((struct array *)self)->v);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
	(void)unused;
	return PyUnicode_FromString(number_name(((struct array *)self)->v.dtype));
}

static PyObject *get_number(PyObject *self, void *which)
{
	struct array *a = (struct array *)self;
	Py_ssize_t bytes = view_item_bytes(&a->v), count = view_item_count(&a->v);

	switch (*(const char *)which) {
	case 'a':
		return PyLong_FromLong(a->v.axis_count);
	case 'i':
		return PyLong_FromSsize_t(bytes);
	case 'c':
		return PyLong_FromSsize_t(count);
	case 'p':
		if (array_lease_on_device(a))
			lease_use_own(array_lease_on_device(a));
		return PyLong_FromVoidPtr((void *)(uintptr_t)a->v.data);
	default:
		return PyLong_FromSsize_t(count * bytes);
	}
}

static PyObject *repr(PyObject *self)
{
	struct array *a = (struct array *)self;
	PyObject *shape = view_shape(&a->v), *values = NULL, *text = NULL;
	const struct lease *gpu = array_lease_on_device(a);
	bool few = view_item_count(&a->v) <= 16 && !gpu;
	const char *dtype = number_name(a->v.dtype);

	if (shape && few)
		values = tolist(self, NULL);
	if (shape && gpu)
		text = PyUnicode_FromFormat("Array(dtype=%s, shape=%R, device=cuda:%u)", dtype, shape,
					    gpu->lender->gpu);
	else if (shape && (values || !few))
		text = few ? PyUnicode_FromFormat("Array(%R, dtype=%s, shape=%R)", values, dtype, shape)
			   : PyUnicode_FromFormat("Array(dtype=%s, shape=%R)", dtype, shape);
	Py_XDECREF(values);
	Py_XDECREF(shape);
	return text;
}

int array_init(PyObject *module)
{
	static PyMethodDef methods[] = {
		{"tolist", tolist, METH_NOARGS, "tolist($self, /)\n--\n\nThe values, as nested lists of numbers."},
		{"item", item, METH_NOARGS, "item($self, /)\n--\n\nThe value of an array of one element."},
		{"copy", copy, METH_NOARGS,
		 "copy($self, /)\n--\n\nThe same in memory of its own: dense, and no longer part of a batch or a map."},
		{"tobytes", tobytes, METH_NOARGS, "tobytes($self, /)\n--\n\nThe elements one behind the other."},
		{"__array__", (PyCFunction)(void (*)(void))array_to_numpy, METH_VARARGS | METH_KEYWORDS,
		 "__array__($self, /, dtype=None, *, copy=None)\n--\n\nAs an array of NumPy."},
		{"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
		 "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
		 "A DLPack capsule of the same memory, of version 1 if max_version says so."},
		{"__dlpack_device__", array_dlpack_device, METH_NOARGS,
		 "__dlpack_device__($self, /)\n--\n\nWhere it is: (1, 0), the CPU, or (2, n), GPU number n."},
		{NULL, NULL, 0, NULL},
	};
	static PyGetSetDef getters[] = {
		{"shape", get_shape, NULL, "Lengths of the axes.", NULL},
		{"strides", get_strides, NULL, "From one element of an axis to the next, in bytes.", NULL},
		{"dtype", get_dtype, NULL, "As NumPy calls it, such as 'uint8'; also 'bfloat16'.", NULL},
		{"ndim", get_number, NULL, "Number of axes.", "a"},
		{"itemsize", get_number, NULL, "Bytes of an element.", "i"},
		{"size", get_number, NULL, "Number of elements.", "c"},
		{"nbytes", get_number, NULL, "Bytes of all elements.", "b"},
		{"data_ptr", get_number, NULL, "Address of the first element.", "p"},
		{"__array_interface__", array_interface, NULL, "For numpy.asarray().", NULL},
		{"__cuda_array_interface__", array_cuda_interface, NULL,
		 "For Numba, CuPy and others, of arrays on a GPU.", NULL},
		{NULL, NULL, NULL, NULL, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_dealloc, dealloc},
		{Py_tp_methods, methods},
		{Py_tp_getset, getters},
		{Py_tp_repr, repr},
		{Py_tp_richcompare, compare},
		{Py_tp_hash, PyObject_HashNotImplemented},
		{Py_bf_getbuffer, array_buffer},
		{Py_mp_subscript, subscript},
		{Py_mp_length, length},
		{Py_sq_item, sq_item},
		{Py_sq_length, length},
		{Py_tp_doc,
		 "A read-only view of numbers, which NumPy, PyTorch and JAX take: those of batches without a copy,\n"
		 "and those that lie in a file with one.\n\n"
		 "numpy.asarray(array), or any function that takes arrays, does it.  The memory stays while a view of "
		 "it lives."},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard.Array",
		.basicsize = sizeof(struct array),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
		.slots = slots,
	};

	array_type = add_type(module, "Array", &spec);
	return array_type ? 0 : -1;
}
