/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_array.c - the type libshard.Array: a view, and the object that keeps its memory alive
 */
#include <string.h>
#include <unistd.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_base.h"

#define OWN_BYTES_MAX (64 << 20)

PyTypeObject *array_type;

struct array *array_new(PyObject *owner, int field, const struct view *v)
{
	struct array *a = PyObject_New(struct array, array_type);

	if (!a)
		return NULL;
	a->owner = Py_NewRef(owner);
	a->field = field;
	a->group = -1;
	a->v = *v;
	if (field >= 0)
		((struct lease *)owner)->view_count[field]++;
	return a;
}

struct array *array_of_field(PyObject *owner, int field, const struct shard_field *f, const void *data,
			     Py_ssize_t count, Py_ssize_t row_stride)
{
	struct view v = {.data = data, .dtype = f->dtype, .axis_count = (int)f->ndim + (count >= 0)};
	int rows = count >= 0;

	if (rows) {
		v.shape[0] = count;
		v.stride[0] = row_stride;
	}
	for (uint32_t i = 0; i < f->ndim; i++)
		v.shape[rows + (int)i] = f->shape[i];
	view_set_dense_strides(&v, rows);
	return array_new(owner, field, &v);
}

struct array *array_promised(struct promise *p, const struct shard_field *f, Py_ssize_t count, Py_ssize_t row_stride)
{
	struct array *a = array_of_field((PyObject *)p, -1, f, (const char *)(uintptr_t)f->offset, count, row_stride);

	if (a)
		a->group = (int)f->group;
	return a;
}

/* read it now, if it is promised; else an exception is set */
static bool array_settle(struct array *a)
{
	struct promise *p = a->group < 0 ? NULL : (struct promise *)a->owner;

	if (!p)
		return true;
	p = ref(p); /* another thread may settle the array meanwhile */
	if (!p->keep(p, a->group)) {
		unref(p);
		return false;
	}
	if (a->group >= 0) {
		a->v.data = p->data[a->group] + (uintptr_t)a->v.data;
		a->owner = ref(p->owner[a->group]);
		a->group = -1;
		unref(p); /* the array's */
	}
	unref(p);
	return true;
}

struct array *array_of_numbers(PyObject *owner, const void *data, uint32_t dtype, Py_ssize_t count)
{
	struct view v = {.data = data, .dtype = dtype, .axis_count = 1, .shape = {count}};

	view_set_dense_strides(&v, 0);
	return array_new(owner, -1, &v);
}

/*
 * Copy the elements of a view of the array's memory, one behind the other.  False with an exception
 * set if they lie in a file that cannot be read any more.
 */
static bool array_read(const struct array *a, const struct view *v, char *to)
{
	if (a->field < 0)
		return map_copy_view(a->owner, v, to);
	view_copy_out(v, to);
	return true;
}

struct array *array_copy(const struct array *a)
{
	struct memory *m = memory_new((size_t)(view_item_count(&a->v) * view_item_bytes(&a->v)));
	struct view v = a->v;
	struct array *copy;

	if (!m)
		return NULL;
	if (!array_read(a, &a->v, m->data)) {
		unref(m);
		return NULL;
	}
	v.data = m->data;
	view_set_dense_strides(&v, 0);
	copy = array_new((PyObject *)m, -1, &v);
	unref(m);
	return copy;
}

bool array_is_mapped(const struct array *a)
{
	return a->field < 0 && !memory_is(a->owner); /* then the owner is a dataset */
}

bool array_own(struct array *a)
{
	struct array *copy;

	if (!array_is_mapped(a) || view_item_count(&a->v) * view_item_bytes(&a->v) > OWN_BYTES_MAX)
		return true;
	copy = array_copy(a);
	if (!copy)
		return false;
	unref(a->owner);
	a->owner = ref(copy->owner);
	a->v = copy->v;
	unref(copy);
	return true;
}

struct array *array_alloc(uint32_t dtype, uint64_t count, void **data)
{
	struct memory *m = memory_new(count > SIZE_MAX / 16 ? SIZE_MAX : (size_t)count * shard_dtype_bytes(dtype));
	struct array *a = m ? array_of_numbers((PyObject *)m, m->data, dtype, (Py_ssize_t)count) : NULL;

	if (a)
		*data = m->data;
	unref(m);
	return a;
}

/* ---- where the bytes are ---- */

bool array_is_reachable(struct array *a)
{
	const struct lender *l = a->field < 0 ? NULL : ((struct lease *)a->owner)->lender;

	if (!l || l->owner_pid == (long)getpid())
		return array_settle(a);
	fail_argument("this batch belongs to process %ld; open a loader in this process after fork", l->owner_pid);
	return false;
}

struct lease *array_lease_on_device(const struct array *a)
{
	struct lease *lease = a->field < 0 ? NULL : (struct lease *)a->owner;

	return lease && lease->lender->on_device ? lease : NULL;
}

bool array_is_readable(struct array *a)
{
	const struct lease *lease = array_lease_on_device(a);

	if (!lease)
		return array_is_reachable(a);
	fail_argument("this array is in the memory of GPU %u; give it to a library that reads GPU memory "
		      "with __dlpack__ or __cuda_array_interface__",
		      lease->lender->gpu);
	return false;
}

/* ---- in expressions: what NumPy makes of them, where NumPy is there ---- */

/*
 * An array keeps its type, since that counts what lies in a loader's memory, and guards what lies
 * in a file.  So it has NumPy's operators and methods by handing them an array of NumPy, which
 * looks into the same memory where that is safe.
 */

/* ---- an array of NumPy ---- */

/* bfloat16 as float32, which has all of its values. */
static struct array *widened(const struct array *a)
{
	struct array *halves = array_copy(a), *wide = NULL;
	Py_ssize_t count = view_item_count(&a->v);
	void *to;

	if (halves)
		wide = array_alloc(SHARD_F32, (uint64_t)count, &to);
	for (Py_ssize_t i = 0; wide && i < count; i++) {
		memset((char *)to + 4 * i, 0, 2);
		memcpy((char *)to + 4 * i + 2, halves->v.data + 2 * i, 2);
	}
	if (wide) {
		const char *data = wide->v.data;

		wide->v = halves->v;
		wide->v.data = data;
		wide->v.dtype = SHARD_F32;
		view_set_dense_strides(&wide->v, 0);
	}
	unref(halves);
	return wide;
}

/*
 * An array of NumPy for reading: of the same memory, or of a copy if that is the map of a file.
 * bfloat16, which NumPy does not have, is float32 there.  NULL with an exception set.
 */
static PyObject *array_numpy(struct array *a)
{
	struct array *safe = NULL;
	PyObject *numpy, *out = NULL;

	if (!array_is_readable(a) || !array_own(a))
		return NULL;
	numpy = PyImport_ImportModule("numpy");
	if (!numpy && PyErr_ExceptionMatches(PyExc_ImportError)) {
		PyErr_Clear();
		PyErr_SetString(PyExc_TypeError, "this needs NumPy, which cannot be imported; array.tolist() does not");
	}
	if (numpy)
		safe = a->v.dtype == SHARD_BF16 ? widened(a) : array_is_mapped(a) ? array_copy(a) : ref(a);
	if (safe)
		out = PyObject_CallMethod(numpy, "asarray", "O", safe);
	unref(safe);
	Py_XDECREF(numpy);
	return out;
}

static PyObject *operand(PyObject *x)
{
	return Py_TYPE(x) == array_type ? array_numpy((struct array *)x) : Py_NewRef(x);
}

/* ---- operators ---- */

static PyObject *binary(PyObject *a, PyObject *b, PyObject *(*function)(PyObject *, PyObject *))
{
	PyObject *left = operand(a), *right = left ? operand(b) : NULL;
	PyObject *out = right ? function(left, right) : NULL;

	Py_XDECREF(right);
	Py_XDECREF(left);
	return out;
}

static PyObject *unary(PyObject *a, PyObject *(*function)(PyObject *))
{
	PyObject *only = operand(a), *out = only ? function(only) : NULL;

	Py_XDECREF(only);
	return out;
}

/* clang-format off */
#define BINARY(name, function)                                                                                         \
	static PyObject *name(PyObject *a, PyObject *b)                                                                \
	{                                                                                                              \
		return binary(a, b, function);                                                                         \
	}
#define UNARY(name, function)                                                                                          \
	static PyObject *name(PyObject *a)                                                                             \
	{                                                                                                              \
		return unary(a, function);                                                                             \
	}

BINARY(add, PyNumber_Add)
BINARY(subtract, PyNumber_Subtract)
BINARY(multiply, PyNumber_Multiply)
BINARY(divide, PyNumber_TrueDivide)
BINARY(floor_divide, PyNumber_FloorDivide)
BINARY(remainder_, PyNumber_Remainder)
BINARY(divmod_, PyNumber_Divmod)
BINARY(matrix_multiply, PyNumber_MatrixMultiply)
BINARY(and_, PyNumber_And)
BINARY(or_, PyNumber_Or)
BINARY(xor_, PyNumber_Xor)
BINARY(shift_left, PyNumber_Lshift)
BINARY(shift_right, PyNumber_Rshift)
UNARY(negative, PyNumber_Negative)
UNARY(positive, PyNumber_Positive)
UNARY(absolute, PyNumber_Absolute)
UNARY(invert, PyNumber_Invert)
UNARY(to_int, PyNumber_Long)
UNARY(to_float, PyNumber_Float)
/* clang-format on */

static PyObject *power(PyObject *a, PyObject *b, PyObject *modulus)
{
	PyObject *left = operand(a), *right = left ? operand(b) : NULL;
	PyObject *out = right ? PyNumber_Power(left, right, modulus) : NULL;

	Py_XDECREF(right);
	Py_XDECREF(left);
	return out;
}

static int truth(PyObject *self)
{
	PyObject *array = operand(self);
	int is = array ? PyObject_IsTrue(array) : -1; /* of several elements NumPy raises */

	Py_XDECREF(array);
	return is;
}

static PyObject *array_compare(PyObject *self, PyObject *other, int op)
{
	PyObject *left = operand(self), *right = left ? operand(other) : NULL;
	PyObject *out = right ? PyObject_RichCompare(left, right, op) : NULL;

	Py_XDECREF(right);
	Py_XDECREF(left);
	return out;
}

/* up to the one whose slot is 0 */
static PyType_Slot array_operators[] = {
	{Py_nb_add, add},
	{Py_nb_subtract, subtract},
	{Py_nb_multiply, multiply},
	{Py_nb_true_divide, divide},
	{Py_nb_floor_divide, floor_divide},
	{Py_nb_remainder, remainder_},
	{Py_nb_divmod, divmod_},
	{Py_nb_matrix_multiply, matrix_multiply},
	{Py_nb_power, power},
	{Py_nb_and, and_},
	{Py_nb_or, or_},
	{Py_nb_xor, xor_},
	{Py_nb_lshift, shift_left},
	{Py_nb_rshift, shift_right},
	{Py_nb_negative, negative},
	{Py_nb_positive, positive},
	{Py_nb_absolute, absolute},
	{Py_nb_invert, invert},
	{Py_nb_int, to_int},
	{Py_nb_float, to_float},
	{Py_nb_bool, truth},
	{0, NULL},
};

/* ---- methods ---- */

/* Has NumPy's array an attribute of that name?  Never fails. */
static bool numpy_has(PyObject *name)
{
	PyObject *numpy = PyImport_ImportModule("numpy");
	PyObject *type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
	bool has = type && PyObject_HasAttr(type, name);

	PyErr_Clear();
	Py_XDECREF(type);
	Py_XDECREF(numpy);
	return has;
}

/* ours, else that of NumPy's array */
static PyObject *array_attribute(PyObject *self, PyObject *name)
{
	PyObject *ours = PyObject_GenericGetAttr(self, name), *array, *out = NULL, *kind, *value, *trace;

	if (ours || !PyErr_ExceptionMatches(PyExc_AttributeError) || PyUnicode_ReadChar(name, 0) == '_')
		return ours;
	if (array_lease_on_device((struct array *)self))
		return fail_attribute(self, name);
	PyErr_Fetch(&kind, &value, &trace);
	if (!numpy_has(name)) {
		PyErr_Restore(kind, value, trace);
		return fail_attribute(self, name);
	}
	Py_XDECREF(kind);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	array = array_numpy((struct array *)self);
	if (array)
		out = PyObject_GetAttr(array, name);
	Py_XDECREF(array);
	return out;
}

/* ---- the type ---- */

/*
 * It has what another library needs to take the bytes without a copy, and what a person needs to
 * look at them.
 */

static void dealloc(PyObject *self)
{
	struct array *a = (struct array *)self;

	if (a->field >= 0)
		((struct lease *)a->owner)->view_count[a->field]--;
	Py_DECREF(a->owner);
	object_free(self);
}

/* ---- numbers ---- */

/* The first element of a view of the array's memory. */
static PyObject *number_at(const struct array *a, const struct view *v)
{
	return a->field < 0 ? map_number(a->owner, v->dtype, v->data) : number_scalar(v->dtype, v->data);
}

static PyObject *tolist(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct array *a = (struct array *)self, *copy;
	PyObject *list;

	if (!array_is_readable(a))
		return NULL;
	copy = array_is_mapped(a) ? array_copy(a) : ref(a);
	list = copy ? view_list(&copy->v) : NULL;
	unref(copy);
	return list;
}

static PyObject *item(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct array *a = (struct array *)self;

	if (!array_is_readable(a))
		return NULL;
	return view_item_count(&a->v) == 1
		       ? number_at(a, &a->v)
		       : fail_argument("item() needs an array of one element; this has %zd", view_item_count(&a->v));
}

/* ---- parts ---- */

static PyObject *sq_item(PyObject *self, Py_ssize_t i)
{
	struct array *a = (struct array *)self;
	struct view row;

	if (!(a->v.axis_count == 1 ? array_is_readable(a) : array_is_reachable(a)))
		return NULL;
	if (!a->v.axis_count || i < 0 || i >= a->v.shape[0]) {
		PyErr_Format(PyExc_IndexError, "index %zd is out of range; the first axis has %zd", i,
			     a->v.axis_count ? a->v.shape[0] : 0);
		return NULL;
	}
	row = view_row(&a->v, i);
	return row.axis_count ? (PyObject *)array_new(a->owner, a->field, &row) : number_at(a, &row);
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

static PyObject *subscript(PyObject *self, PyObject *key)
{
	struct array *a = (struct array *)self;
	Py_ssize_t count = PyTuple_Check(key) ? PyTuple_Size(key) : -1, i;
	PyObject *keys, *out;
	bool plain = count >= 0 || is_plain(key);

	for (i = 0; plain && i < count; i++)
		plain = is_plain(PyTuple_GetItem(key, i));
	if (!plain) { /* by NumPy, which may copy */
		keys = array_numpy(a);
		out = keys ? PyObject_GetItem(keys, key) : NULL;
		Py_XDECREF(keys);
		return out;
	}
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

static PyObject *copy(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return array_is_readable((struct array *)self) ? (PyObject *)array_copy((struct array *)self) : NULL;
}

/* Is this the shape of `bytes` bytes? */
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

static PyObject *tobytes(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct array *a = (struct array *)self;
	Py_ssize_t bytes = view_item_count(&a->v) * view_item_bytes(&a->v);
	PyObject *out = array_is_readable(a) ? PyBytes_FromStringAndSize(NULL, bytes) : NULL;

	if (out && !array_read(a, &a->v, PyBytes_AsString(out)))
		Py_CLEAR(out);
	return out;
}

/* ---- other copies ---- */

static PyObject *to_numpy(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return array_numpy((struct array *)self);
}

/* An array in memory of its own, whatever this one looks into. */
static PyObject *reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct array *a = (struct array *)self;
	PyObject *core = PyImport_ImportModule("libshard._core"), *make = NULL, *bytes = NULL, *out = NULL;

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

PyObject *array_unpickle(PyObject *Py_UNUSED(self), PyObject *args)
{
	const char *name, *bytes;
	PyObject *shape;
	Py_ssize_t count;
	struct view v = {.data = NULL};
	struct array *a;
	void *data;

	if (!PyArg_ParseTuple(args, "sO!y#", &name, &PyTuple_Type, &shape, &bytes, &count))
		return NULL;
	v.dtype = number_named(name);
	if (!v.dtype || !take_shape(&v, shape, count))
		return PyErr_Occurred() ? NULL : fail_argument("these are not bytes of an array of %s", name);
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

static PyObject *get(PyObject *self, void *which)
{
	struct array *a = (struct array *)self;
	Py_ssize_t bytes = view_item_bytes(&a->v), count = view_item_count(&a->v);

	switch (*(const char *)which) {
	case 's':
		return view_shape(&a->v);
	case 't':
		return view_strides(&a->v);
	case 'd':
		return PyUnicode_FromString(number_name(a->v.dtype));
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
	{"__deepcopy__", copy, METH_O, NULL},
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
	{"shape", get, NULL, "Lengths of the axes.", "s"},
	{"strides", get, NULL, "From one element of an axis to the next, in bytes.", "t"},
	{"dtype", get, NULL, "As NumPy calls it, such as 'uint8'; also 'bfloat16'.", "d"},
	{"ndim", get, NULL, "Number of axes.", "a"},
	{"itemsize", get, NULL, "Bytes of an element.", "i"},
	{"size", get, NULL, "Number of elements.", "c"},
	{"nbytes", get, NULL, "Bytes of all elements.", "b"},
	{"data_ptr", get, NULL, "Address of the first element.", "p"},
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
	return add_type(&array_type, module, "Array", &spec);
}
