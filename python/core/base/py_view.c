/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_view.c - memory seen as an n-dimensional array, and what its elements are called
 */
#include <math.h>
#include <string.h>

#include "python/core/base/py_base.h"
#include "shard_inspect.h"

/* ---- dtypes as other libraries call them, and elements as numbers of Python ---- */

/*
 * NumPy's name, the buffer protocol's format, and NumPy's short code for __array_interface__.  Its
 * int64 is C's long: of a long long it would make another type.
 */
static const struct {
	const char *name, *format, *code;
} dtypes[] = {
	[SHARD_U8] = {"uint8", "B", "|u1"},    [SHARD_I8] = {"int8", "b", "|i1"},
	[SHARD_U16] = {"uint16", "H", "<u2"},  [SHARD_I16] = {"int16", "h", "<i2"},
	[SHARD_U32] = {"uint32", "I", "<u4"},  [SHARD_I32] = {"int32", "i", "<i4"},
	[SHARD_U64] = {"uint64", "L", "<u8"},  [SHARD_I64] = {"int64", "l", "<i8"},
	[SHARD_F16] = {"float16", "e", "<f2"}, [SHARD_BF16] = {"bfloat16", NULL, "<V2"},
	[SHARD_F32] = {"float32", "f", "<f4"}, [SHARD_F64] = {"float64", "d", "<f8"},
	[SHARD_BOOL] = {"bool", "?", "|b1"},
};

const char *number_name(uint32_t dtype)
{
	return dtypes[dtype].name;
}

uint32_t number_named(const char *name)
{
	for (uint32_t d = SHARD_U8; d <= SHARD_BOOL; d++)
		if (!strcmp(dtypes[d].name, name))
			return d;
	return 0;
}

const char *number_format(uint32_t dtype)
{
	return dtypes[dtype].format;
}

const char *number_typestr(uint32_t dtype)
{
	return dtypes[dtype].code;
}

static double half_to_double(uint16_t bits)
{
	int exponent = bits >> 10 & 31;
	double mantissa = bits & 1023, value;

	if (exponent == 31)
		value = mantissa ? (double)NAN : (double)INFINITY;
	else
		value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
	return bits & 0x8000 ? -value : value;
}

bool number_slice(PyObject *slice, Py_ssize_t *first, Py_ssize_t *stop, Py_ssize_t *step)
{
	if (!PySlice_Unpack(slice, first, stop, step))
		return true;
	if (PyErr_ExceptionMatches(PyExc_TypeError)) {
		PyErr_Clear();
		PyErr_SetString(PyExc_TypeError, "a slice must be of whole numbers, as in [10:20] or [::2]");
	} else if (PyErr_ExceptionMatches(PyExc_ValueError)) {
		PyErr_Clear();
		fail_argument("the step of a slice must not be 0");
	}
	return false;
}

PyObject *number_scalar(uint32_t dtype, const void *at)
{
	uint64_t u = 0;
	uint32_t word;
	double d;
	float f;

	memcpy(&u, at, shard_dtype_bytes(dtype));
	switch (dtype) {
	case SHARD_U8:
	case SHARD_U16:
	case SHARD_U32:
	case SHARD_U64:
		return PyLong_FromUnsignedLongLong(u);
	case SHARD_I8:
		return PyLong_FromLongLong((int8_t)u);
	case SHARD_I16:
		return PyLong_FromLongLong((int16_t)u);
	case SHARD_I32:
		return PyLong_FromLongLong((int32_t)u);
	case SHARD_I64:
		return PyLong_FromLongLong((int64_t)u);
	case SHARD_BOOL:
		return PyBool_FromLong(u != 0);
	case SHARD_F16:
		return PyFloat_FromDouble(half_to_double((uint16_t)u));
	case SHARD_F64:
		memcpy(&d, &u, sizeof(d));
		return PyFloat_FromDouble(d);
	default:
		word = dtype == SHARD_BF16 ? (uint32_t)u << 16 : (uint32_t)u;
		memcpy(&f, &word, sizeof(f));
		return PyFloat_FromDouble((double)f);
	}
}

static bool has_format(const Py_buffer *b, const char *formats)
{
	return b->format && b->format[0] && !b->format[1] && strchr(formats, b->format[0]);
}

bool number_is_signed(const Py_buffer *b)
{
	return has_format(b, "bhilqn");
}

bool number_is_whole(const Py_buffer *b)
{
	return b->itemsize <= 8 && has_format(b, "bhilqnBHILQN?");
}

/* ---- shape, strides, and the elements ---- */

Py_ssize_t view_item_bytes(const struct view *v)
{
	return (Py_ssize_t)shard_dtype_bytes(v->dtype);
}

Py_ssize_t view_item_count(const struct view *v)
{
	Py_ssize_t count = 1;

	for (int i = 0; i < v->axis_count; i++)
		count *= v->shape[i];
	return count;
}

void view_set_dense_strides(struct view *v, int axis)
{
	Py_ssize_t bytes = view_item_bytes(v);

	for (int i = v->axis_count; i-- > axis; bytes *= v->shape[i])
		v->stride[i] = bytes;
}

bool view_is_dense(const struct view *v)
{
	struct view dense = *v;

	if (!view_item_count(v))
		return true;
	view_set_dense_strides(&dense, 0);
	for (int i = 0; i < v->axis_count; i++)
		if (v->shape[i] > 1 && v->stride[i] != dense.stride[i])
			return false;
	return true;
}

struct view view_row(const struct view *v, Py_ssize_t i)
{
	struct view row = *v;

	row.data += i * v->stride[0];
	row.axis_count--;
	memmove(row.shape, row.shape + 1, (size_t)row.axis_count * sizeof(*row.shape));
	memmove(row.stride, row.stride + 1, (size_t)row.axis_count * sizeof(*row.stride));
	return row;
}

/* ---- copies ---- */

static char *copy_axis(const struct view *v, int axis, int dense_axis, Py_ssize_t dense_bytes, const char *from,
		       char *to)
{
	if (axis == dense_axis) {
		memcpy(to, from, (size_t)dense_bytes);
		return to + dense_bytes;
	}
	for (Py_ssize_t i = 0; i < v->shape[axis]; i++)
		to = copy_axis(v, axis + 1, dense_axis, dense_bytes, from + i * v->stride[axis], to);
	return to;
}

void view_copy_out(const struct view *v, char *to)
{
	Py_ssize_t dense_bytes = view_item_bytes(v);
	int dense_axis = v->axis_count; /* from here on the axes are dense; dense_bytes is all of them together */

	while (dense_axis && v->stride[dense_axis - 1] == dense_bytes)
		dense_bytes *= v->shape[--dense_axis];
	if (view_item_count(v))
		copy_axis(v, 0, dense_axis, dense_bytes, v->data, to);
}

/* ---- for Python ---- */

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

PyObject *view_shape(const struct view *v)
{
	return tuple_of(v->shape, v->axis_count);
}

PyObject *view_strides(const struct view *v)
{
	return tuple_of(v->stride, v->axis_count);
}

static PyObject *list_of(const struct view *v, int axis, const char *at)
{
	PyObject *list, *item;

	if (axis == v->axis_count)
		return number_scalar(v->dtype, at);
	list = PyList_New(v->shape[axis]);
	for (Py_ssize_t i = 0; list && i < v->shape[axis]; i++) {
		item = list_of(v, axis + 1, at + i * v->stride[axis]);
		if (!item || PyList_SetItem(list, i, item) < 0)
			Py_CLEAR(list);
	}
	return list;
}

PyObject *view_list(const struct view *v)
{
	return list_of(v, 0, v->data);
}

/* ---- a schema, described to Python ---- */

PyObject *schema_fields(const struct shard_schema *s)
{
	PyObject *list = PyList_New(0), *dict;

	for (uint32_t f = 0; list && f < s->field_count; f++) {
		const struct shard_field *d = &s->field[f];
		struct view shape = {.axis_count = (int)d->ndim};

		for (uint32_t i = 0; i < d->ndim; i++)
			shape.shape[i] = d->shape[i];
		dict = Py_BuildValue("{s:s,s:s,s:N,s:s,s:s,s:s,s:I,s:I,s:K,s:K,s:K,s:I}", "name", d->name, "dtype",
				     number_name(d->dtype), "shape", view_shape(&shape), "kind",
				     shard_name(SHARD_NAME_KIND, d->kind), "layout",
				     shard_name(SHARD_NAME_LAYOUT, d->layout), "semantic",
				     shard_name(SHARD_NAME_SEMANTIC, d->semantic), "group", d->group, "ragged_axes",
				     d->ragged_axes, "offset", d->offset, "bytes", d->bytes, "stride", d->stride,
				     "length_field", d->length_field);
		if (!dict || PyList_Append(list, dict) < 0)
			Py_CLEAR(list);
		Py_XDECREF(dict);
	}
	return list;
}
