/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_array_type.c - the type libshard.Array
 *
 * It has what another library needs to take the bytes without a copy, and what a person needs to
 * look at them.
 */
#include "python/core/array/py_array.h"

#include <string.h>

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

/* Is it the plain kind of index: a number, a slice or an ellipsis?  To NumPy a bool is a mask. */
static bool is_plain(PyObject *key)
{
	return (PyIndex_Check(key) && !PyBool_Check(key) && !PyObject_HasAttrString(key, "__len__")) ||
	       PySlice_Check(key) || key == Py_Ellipsis;
}

/* One axis of `from` by one key: the next axis of `to`, or none.  Else an exception is set. */
static bool take_axis(const struct view *from, int axis, PyObject *key, struct view *to)
{
	Py_ssize_t n = from->shape[axis], first, stop, step;

	if (PySlice_Check(key)) {
		if (!number_slice(key, &first, &stop, &step))
			return false;
		n = PySlice_AdjustIndices(n, &first, &stop, step);
		to->shape[to->axis_count] = n;
		/* a step that is not taken may be any number */
		to->stride[to->axis_count++] = from->stride[axis] * (n < 2 ? 1 : step);
		to->data += n ? first * from->stride[axis] : 0;
		return true;
	}
	first = PyNumber_AsSsize_t(key, PyExc_IndexError);
	if (first == -1 && PyErr_Occurred())
		return false;
	if (first < -n || first >= n) {
		PyErr_Format(PyExc_IndexError, "index %zd is out of range; axis %d has %zd", first, axis, n);
		return false;
	}
	to->data += (first < 0 ? first + n : first) * from->stride[axis];
	return true;
}

/* Several plain keys: a view of the same memory, or a number. */
static PyObject *subscript_axes(struct array *a, PyObject *keys)
{
	Py_ssize_t count = PyTuple_Size(keys), ellipses = 0;
	struct view v = {.data = a->v.data, .dtype = a->v.dtype};
	int axis = 0, whole;

	for (Py_ssize_t k = 0; k < count; k++)
		ellipses += PyTuple_GetItem(keys, k) == Py_Ellipsis;
	whole = a->v.axis_count - (int)(count - ellipses); /* axes that no key is for */
	if (whole < 0 || ellipses > 1) {
		PyErr_Format(PyExc_IndexError,
			     ellipses > 1 ? "an index can only have one ellipsis"
					  : "too many indices: the array has %d axes",
			     a->v.axis_count);
		return NULL;
	}
	for (Py_ssize_t k = 0; k <= count; k++) {
		PyObject *key = k < count ? PyTuple_GetItem(keys, k) : NULL;

		for (; whole && (key == Py_Ellipsis || (!key && !ellipses)); whole--, axis++) {
			v.shape[v.axis_count] = a->v.shape[axis];
			v.stride[v.axis_count++] = a->v.stride[axis];
		}
		if (key && key != Py_Ellipsis && !take_axis(&a->v, axis++, key, &v))
			return NULL;
	}
	if (v.axis_count || ellipses)
		return (PyObject *)array_new(a->owner, a->field, &v);
	return array_is_readable(a) ? number_at(a, &v) : NULL;
}

/* What is not plain: by NumPy, which may copy. */
static PyObject *subscript_numpy(struct array *a, PyObject *key)
{
	PyObject *array = array_numpy(a), *out = array ? PyObject_GetItem(array, key) : NULL;

	Py_XDECREF(array);
	return out;
}

static PyObject *subscript(PyObject *self, PyObject *key)
{
	struct array *a = (struct array *)self;
	Py_ssize_t count = PyTuple_Check(key) ? PyTuple_Size(key) : -1, i;
	PyObject *keys, *out;
	bool plain = count >= 0 || is_plain(key);

	for (i = 0; plain && i < count; i++)
		plain = is_plain(PyTuple_GetItem(key, i));
	if (!plain)
		return subscript_numpy(a, key);
	if (!array_is_reachable(a))
		return NULL;
	keys = count >= 0 ? Py_NewRef(key) : PyTuple_Pack(1, key);
	out = keys ? subscript_axes(a, keys) : NULL;
	Py_XDECREF(keys);
	return out;
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

/* Is this the shape of so many bytes? */
static bool take_shape(struct view *v, PyObject *shape, Py_ssize_t bytes)
{
	Py_ssize_t axes = PyTuple_Size(shape), n, used = view_item_bytes(v);

	for (Py_ssize_t i = 0; axes <= VIEW_AXES_MAX && i < axes; i++) {
		n = PyNumber_AsSsize_t(PyTuple_GetItem(shape, i), PyExc_OverflowError);
		if (n < 0 || (n && used > bytes / n))
			return false;
		v->shape[v->axis_count++] = n;
		used *= n;
	}
	return axes <= VIEW_AXES_MAX && used == bytes;
}

/* Without NumPy, whose reshape() can do more. */
static PyObject *reshape(PyObject *self, PyObject *shape)
{
	struct array *a = (struct array *)self;
	struct view v;

	if (!array_is_reachable(a))
		return NULL;
	v = a->v;
	v.axis_count = 0;
	if (!PyTuple_Check(shape) || !view_is_dense(&a->v) ||
	    !take_shape(&v, shape, view_item_count(&a->v) * view_item_bytes(&a->v)))
		return PyErr_Occurred()
			       ? NULL
			       : fail_argument("reshape: needs a dense array, and a shape of as many elements");
	view_set_dense_strides(&v, 0);
	return (PyObject *)array_new(a->owner, a->field, &v);
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

/* ---- other copies ---- */

static PyObject *deep_copy(PyObject *self, PyObject *memo)
{
	(void)memo;
	return copy(self, NULL);
}

static PyObject *to_numpy(PyObject *self, PyObject *unused)
{
	(void)unused;
	return array_numpy((struct array *)self);
}

/* An array in memory of its own, whatever this one looks into. */
static PyObject *reduce(PyObject *self, PyObject *unused)
{
	struct array *a = (struct array *)self;
	PyObject *core = PyImport_ImportModule("libshard._core"), *make = NULL, *bytes = NULL, *out = NULL;

	(void)unused;
	if (core)
		make = PyObject_GetAttrString(core, "_array");
	if (make)
		bytes = tobytes(self, NULL);
	if (bytes)
		out = Py_BuildValue("(O(sNO))", make, number_name(a->v.dtype), view_shape(&a->v), bytes);
	Py_XDECREF(bytes);
	Py_XDECREF(make);
	Py_XDECREF(core);
	return out;
}

PyObject *array_unpickle(PyObject *self, PyObject *args)
{
	const char *name, *bytes;
	PyObject *shape;
	Py_ssize_t count;
	struct view v = {.data = NULL};
	struct array *a;
	void *data;

	(void)self;
	if (!PyArg_ParseTuple(args, "sO!y#", &name, &PyTuple_Type, &shape, &bytes, &count))
		return NULL;
	v.dtype = number_named(name);
	if (!v.dtype || !take_shape(&v, shape, count))
		return PyErr_Occurred() ? NULL : fail_argument("these are no bytes of an array of %s", name);
	a = array_alloc(v.dtype, (uint64_t)view_item_count(&v), &data);
	if (!a)
		return NULL;
	memcpy(data, bytes, (size_t)count);
	v.data = data;
	view_set_dense_strides(&v, 0);
	a->v = v;
	return (PyObject *)a;
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
		if (!array_settle(a))
			return NULL;
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

static PyMethodDef methods[] = {
	{"tolist", tolist, METH_NOARGS, "tolist($self, /)\n--\n\nThe values, as nested lists of numbers."},
	{"item", item, METH_NOARGS, "item($self, /)\n--\n\nThe value of an array of one element."},
	{"copy", copy, METH_NOARGS,
	 "copy($self, /)\n--\n\nThe same in memory of its own: dense, and no longer part of a batch or a map."},
	{"_reshape", reshape, METH_O, "_reshape($self, shape, /)\n--\n\n"},
	{"tobytes", tobytes, METH_NOARGS, "tobytes($self, /)\n--\n\nThe elements one behind the other."},
	{"numpy", to_numpy, METH_NOARGS,
	 "numpy($self, /)\n--\n\n"
	 "An array of NumPy of the same numbers, to be read: bfloat16 as float32, what lies in a file as a "
	 "copy."},
	{"__reduce__", reduce, METH_NOARGS, NULL},
	{"__deepcopy__", deep_copy, METH_O, NULL},
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
	{"__cuda_array_interface__", array_cuda_interface, NULL, "For Numba, CuPy and others, of arrays on a GPU.",
	 NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

int array_init(PyObject *module)
{
	PyType_Slot slots[64] = {
		{Py_tp_dealloc, dealloc},
		{Py_tp_iter, PySeqIter_New},
		{Py_tp_getattro, array_attribute},
		{Py_tp_methods, methods},
		{Py_tp_getset, getters},
		{Py_tp_repr, repr},
		{Py_tp_richcompare, array_compare},
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
		 "it lives.\n\n"
		 "Where NumPy is there, an array has its operators and methods: array == 3, array.mean(), "
		 "array[mask].\nWhat these give are arrays of NumPy."},
		{0, NULL},
	};
	PyType_Spec spec = {
		.name = "libshard.Array",
		.basicsize = sizeof(struct array),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
		.slots = slots,
	};

	for (PyType_Slot *to = slots, *from = array_operators; from->slot; to++)
		if (!to->slot)
			*to = *from++;
	array_type = add_type(module, "Array", &spec);
	return array_type ? 0 : -1;
}
