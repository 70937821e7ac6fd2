/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_view.c - memory seen as an n-dimensional array: shape, strides, and the elements
 */
#include "python/core/base/py_view.h"

#include <string.h>

#include "python/core/base/py_number.h"

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

/* How many of the first axes are not dense, and the bytes of all others together. */
static int find_dense_axes(const struct view *v, Py_ssize_t *bytes)
{
	int axis = v->axis_count;

	*bytes = view_item_bytes(v);
	while (axis && v->stride[axis - 1] == *bytes)
		*bytes *= v->shape[--axis];
	return axis;
}

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
	Py_ssize_t dense_bytes;
	int dense_axis = find_dense_axes(v, &dense_bytes);

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
