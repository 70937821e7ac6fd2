/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_array.c - read-only views of fields
 *
 * As little as another library needs to take the bytes without a copy (py_buffer.c, py_dlpack.c, py_device.c), and what a person needs
 * to look at them without one.
 */
#include "python/core/base/py_core.h"

#include <string.h>
#include <unistd.h>

PyTypeObject *array_type;

/* ---- making them ---- */

struct array *array_new(PyObject *owner, int field, const void *data, uint32_t dtype, int axis_count, const Py_ssize_t *shape,
			const Py_ssize_t *stride)
{
	struct array *a = PyObject_New(struct array, array_type);

	if (!a)
		return NULL;
	a->owner = Py_NewRef(owner);
	a->data = data;
	a->dtype = dtype;
	a->axis_count = axis_count;
	a->field = field;
	memcpy(a->shape, shape, (size_t)axis_count * sizeof(*shape));
	memcpy(a->stride, stride, (size_t)axis_count * sizeof(*stride));
	if (field >= 0)
		((struct lease *)owner)->view_count[field]++;
	return a;
}

static void fill_dense_strides(int axis_count, const Py_ssize_t *shape, Py_ssize_t item_bytes, Py_ssize_t *stride)
{
	for (int i = axis_count; i-- > 0;) {
		stride[i] = item_bytes;
		item_bytes *= shape[i];
	}
}

struct array *array_of_field(PyObject *owner, int field, const struct shard_field *f, const void *data, Py_ssize_t count,
			     Py_ssize_t row_stride)
{
	Py_ssize_t shape[AXES_MAX], stride[AXES_MAX];
	int rows = count >= 0;

	if (rows) {
		shape[0] = count;
		stride[0] = row_stride;
	}
	for (uint32_t i = 0; i < f->ndim; i++)
		shape[rows + (int)i] = f->shape[i];
	fill_dense_strides((int)f->ndim, shape + rows, (Py_ssize_t)shard_dtype_bytes(f->dtype), stride + rows);
	return array_new(owner, field, data, f->dtype, rows + (int)f->ndim, shape, stride);
}

Py_ssize_t array_item_count(const struct array *a)
{
	Py_ssize_t count = 1;

	for (int i = 0; i < a->axis_count; i++)
		count *= a->shape[i];
	return count;
}

bool array_is_dense(const struct array *a)
{
	Py_ssize_t expected[AXES_MAX];

	if (!array_item_count(a))
		return true;
	fill_dense_strides(a->axis_count, a->shape, (Py_ssize_t)shard_dtype_bytes(a->dtype), expected);
	for (int i = 0; i < a->axis_count; i++)
		if (a->shape[i] > 1 && a->stride[i] != expected[i])
			return false;
	return true;
}

/* How many of the first axes are not dense, and the bytes of all others together. */
static int find_dense_axes(const struct array *a, Py_ssize_t *bytes)
{
	int axis = a->axis_count;

	*bytes = (Py_ssize_t)shard_dtype_bytes(a->dtype);
	while (axis && a->stride[axis - 1] == *bytes)
		*bytes *= a->shape[--axis];
	return axis;
}

static char *copy_axis(const struct array *a, int axis, int dense_axis, Py_ssize_t dense_bytes, const char *from, char *to)
{
	if (axis == dense_axis) {
		memcpy(to, from, (size_t)dense_bytes);
		return to + dense_bytes;
	}
	for (Py_ssize_t i = 0; i < a->shape[axis]; i++)
		to = copy_axis(a, axis + 1, dense_axis, dense_bytes, from + i * a->stride[axis], to);
	return to;
}

void array_copy_out(const struct array *a, char *to)
{
	Py_ssize_t dense_bytes;
	int dense_axis = find_dense_axes(a, &dense_bytes);

	if (array_item_count(a))
		copy_axis(a, 0, dense_axis, dense_bytes, a->data, to);
}

struct array *array_copy(const struct array *a)
{
	Py_ssize_t item_bytes = (Py_ssize_t)shard_dtype_bytes(a->dtype), stride[AXES_MAX];
	struct memory *m = memory_new((size_t)(array_item_count(a) * item_bytes));
	struct array *copy;

	if (!m)
		return NULL;
	array_copy_out(a, m->data);
	fill_dense_strides(a->axis_count, a->shape, item_bytes, stride);
	copy = array_new((PyObject *)m, -1, m->data, a->dtype, a->axis_count, a->shape, stride);
	unref(m);
	return copy;
}

bool array_is_reachable(const struct array *a)
{
	if (a->field < 0 || ((struct lease *)a->owner)->loader->owner_pid == (long)getpid())
		return true;
	fail_argument("this batch belongs to process %ld; a loader's memory is not inherited by fork",
		      ((struct lease *)a->owner)->loader->owner_pid);
	return false;
}

struct lease *array_lease_on_device(const struct array *a)
{
	struct lease *lease = a->field < 0 ? NULL : (struct lease *)a->owner;

	return lease && lease->loader->on_device ? lease : NULL;
}

bool array_is_readable(const struct array *a)
{
	const struct lease *lease = array_lease_on_device(a);

	if (!lease)
		return array_is_reachable(a);
	fail_argument("this array is in the memory of GPU %u; give it to a library that works there, which takes it by __dlpack__ or "
		      "__cuda_array_interface__", lease->loader->gpu);
	return false;
}

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

static PyObject *tolist(PyObject *self, PyObject *unused)
{
	struct array *a = (struct array *)self;

	(void)unused;
	return array_is_readable(a) ? array_list(a) : NULL;
}

static PyObject *item(PyObject *self, PyObject *unused)
{
	struct array *a = (struct array *)self;

	(void)unused;
	if (!array_is_readable(a))
		return NULL;
	return array_item_count(a) == 1 ? array_scalar(a->dtype, a->data)
					: fail_argument("item() is for arrays of one element; this has %zd", array_item_count(a));
}

/* ---- views of views ---- */

static PyObject *part(struct array *a, Py_ssize_t first, Py_ssize_t step, Py_ssize_t count)
{
	struct array *view = array_new(a->owner, a->field, a->data + first * a->stride[0], a->dtype, a->axis_count, a->shape, a->stride);

	if (view) {
		view->shape[0] = count;
		view->stride[0] = (count < 2 ? 1 : step) * a->stride[0]; /* else no step is taken, and it may be any number */
	}
	return (PyObject *)view;
}

static PyObject *element(struct array *a, Py_ssize_t i)
{
	const char *at = a->data + i * a->stride[0];

	return a->axis_count == 1 ? array_scalar(a->dtype, at)
				  : (PyObject *)array_new(a->owner, a->field, at, a->dtype, a->axis_count - 1, a->shape + 1, a->stride + 1);
}

static PyObject *sq_item(PyObject *self, Py_ssize_t i)
{
	struct array *a = (struct array *)self;

	if (!(a->axis_count == 1 ? array_is_readable(a) : array_is_reachable(a)))
		return NULL;
	if (!a->axis_count || i < 0 || i >= a->shape[0]) {
		PyErr_Format(PyExc_IndexError, "index %zd; the first axis has %zd", i, a->axis_count ? a->shape[0] : 0);
		return NULL;
	}
	return element(a, i);
}

static PyObject *subscript(PyObject *self, PyObject *key)
{
	struct array *a = (struct array *)self;
	Py_ssize_t first, stop, step, i;

	if (!a->axis_count)
		return fail_argument("an array without axes has no parts; item() is its value");
	if (PySlice_Check(key)) {
		if (PySlice_Unpack(key, &first, &stop, &step) < 0)
			return NULL;
		i = PySlice_AdjustIndices(a->shape[0], &first, &stop, step);
		return part(a, first, step, i);
	}
	if (!PyIndex_Check(key) || PyBool_Check(key)) { /* to NumPy a bool is a mask */
		PyErr_SetString(PyExc_TypeError, "an index of the first axis, or a slice of it; numpy.asarray(array) takes all others");
		return NULL;
	}
	i = PyNumber_AsSsize_t(key, PyExc_IndexError);
	if (i == -1 && PyErr_Occurred())
		return NULL;
	return sq_item(self, i < 0 ? i + a->shape[0] : i);
}

static Py_ssize_t length(PyObject *self)
{
	struct array *a = (struct array *)self;

	if (a->axis_count)
		return a->shape[0];
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
	Py_ssize_t bytes = array_item_count(a) * (Py_ssize_t)shard_dtype_bytes(a->dtype);
	PyObject *out = array_is_readable(a) ? PyBytes_FromStringAndSize(NULL, bytes) : NULL;

	(void)unused;
	if (out)
		array_copy_out(a, PyBytes_AsString(out));
	return out;
}

/* ---- what they are ---- */

static PyObject *tuple_of(const Py_ssize_t *values, int count)
{
	PyObject *tuple = PyTuple_New(count), *number;

	for (int i = 0; tuple && i < count; i++) {
		number = PyLong_FromSsize_t(values[i]);
		if (!number || PyTuple_SetItem(tuple, i, number) < 0)
			Py_CLEAR(tuple);
	}
	return tuple;
}

PyObject *array_shape(PyObject *self, void *unused)
{
	(void)unused;
	return tuple_of(((struct array *)self)->shape, ((struct array *)self)->axis_count);
}

PyObject *array_strides(PyObject *self, void *unused)
{
	(void)unused;
	return tuple_of(((struct array *)self)->stride, ((struct array *)self)->axis_count);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
	(void)unused;
	return array_numpy_name(((struct array *)self)->dtype);
}

static PyObject *get_number(PyObject *self, void *which)
{
	struct array *a = (struct array *)self;
	Py_ssize_t bytes = (Py_ssize_t)shard_dtype_bytes(a->dtype), count = array_item_count(a);

	switch (*(const char *)which) {
	case 'a': return PyLong_FromLong(a->axis_count);
	case 'i': return PyLong_FromSsize_t(bytes);
	case 'c': return PyLong_FromSsize_t(count);
	case 'p':
		if (array_lease_on_device(a))
			device_use_own(array_lease_on_device(a));
		return PyLong_FromVoidPtr((void *)(uintptr_t)a->data);
	default: return PyLong_FromSsize_t(count * bytes);
	}
}

static PyObject *repr(PyObject *self)
{
	struct array *a = (struct array *)self;
	PyObject *shape = array_shape(self, NULL), *values = NULL, *text = NULL;
	const struct lease *gpu = array_lease_on_device(a);
	bool few = array_item_count(a) <= 16 && !gpu;

	if (shape && few)
		values = tolist(self, NULL);
	if (shape && gpu)
		text = PyUnicode_FromFormat("Array(dtype=%s, shape=%R, device=cuda:%u)", array_name(a->dtype), shape, gpu->loader->gpu);
	else if (shape && (values || !few))
		text = few ? PyUnicode_FromFormat("Array(%R, dtype=%s, shape=%R)", values, array_name(a->dtype), shape)
			   : PyUnicode_FromFormat("Array(dtype=%s, shape=%R)", array_name(a->dtype), shape);
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
		{"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
		 "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
		 "A DLPack capsule of the same memory, of version 1 if max_version says so."},
		{"__dlpack_device__", array_dlpack_device, METH_NOARGS, "__dlpack_device__($self, /)\n--\n\nWhere it is: (1, 0), the CPU, or (2, n), GPU number n."},
		{NULL, NULL, 0, NULL},
	};
	static PyGetSetDef getters[] = {
		{"shape", array_shape, NULL, "Lengths of the axes.", NULL},
		{"strides", array_strides, NULL, "From one element of an axis to the next, in bytes.", NULL},
		{"dtype", get_dtype, NULL, "As NumPy calls it, such as 'uint8'; also 'bfloat16'.", NULL},
		{"ndim", get_number, NULL, "Number of axes.", "a"},
		{"itemsize", get_number, NULL, "Bytes of an element.", "i"},
		{"size", get_number, NULL, "Number of elements.", "c"},
		{"nbytes", get_number, NULL, "Bytes of all elements.", "b"},
		{"data_ptr", get_number, NULL, "Address of the first element.", "p"},
		{"__array_interface__", array_interface, NULL, "For numpy.asarray().", NULL},
		{"__cuda_array_interface__", array_cuda_interface, NULL, "For Numba, CuPy and others, of arrays on a GPU.", NULL},
		{NULL, NULL, NULL, NULL, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_dealloc, dealloc},	   {Py_tp_methods, methods},   {Py_tp_getset, getters},
		{Py_tp_repr, repr},		   {Py_bf_getbuffer, array_buffer}, {Py_mp_subscript, subscript},
		{Py_mp_length, length},		   {Py_sq_item, sq_item},      {Py_sq_length, length},
		{Py_tp_doc, "A read-only view of numbers, which NumPy, PyTorch and JAX take without a copy.\n\n"
			    "numpy.asarray(array), or any function that takes arrays, does it.  The memory stays while a view of it lives."},
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
