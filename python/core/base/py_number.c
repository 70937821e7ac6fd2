/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_number.c - what other libraries call dtypes, and elements as numbers of Python
 */
#include "python/core/base/py_number.h"

#include <math.h>
#include <string.h>

#include "python/core/base/py_errors.h"

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
