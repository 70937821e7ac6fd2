/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_operators.c - arrays in expressions: what NumPy makes of them, where NumPy is there
 */
#include "python/core/array/py_array.h"

#include <string.h>

#include "python/core/base/py_errors.h"

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

PyObject *array_numpy(struct array *a)
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

PyObject *array_compare(PyObject *self, PyObject *other, int op)
{
	PyObject *left = operand(self), *right = left ? operand(other) : NULL;
	PyObject *out = right ? PyObject_RichCompare(left, right, op) : NULL;

	Py_XDECREF(right);
	Py_XDECREF(left);
	return out;
}

PyType_Slot array_operators[] = {
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

PyObject *array_attribute(PyObject *self, PyObject *name)
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
