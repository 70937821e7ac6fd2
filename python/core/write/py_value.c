/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_value.c - a value of Python, as bytes of a field
 */
#include "python/core/write/py_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "python/core/base/py_base.h"
#include "shard.h"

struct target {
	const struct shard_field *f;
	unsigned long long record;
	Py_ssize_t shape[SHARD_DIMS_MAX]; /* of this value: a ragged one may be shorter than the field */
};

static bool refuse(const struct target *t, const char *what)
{
	fail_record(t->record, t->f->name, "%s", what);
	return false;
}

/* "uint8[32,32,3]" */
static void describe(char *out, size_t room, uint32_t dtype, const Py_ssize_t *shape, int axes, bool ragged)
{
	size_t used = (size_t)snprintf(out, room, "%s[", number_name(dtype));

	for (int i = 0; i < axes && used < room; i++)
		used += (size_t)snprintf(out + used, room - used, "%s%s%zd", i ? "," : "", ragged && !i ? "<=" : "",
					 shape[i]);
	if (used < room)
		snprintf(out + used, room - used, "]");
}

static void describe_field(char *out, size_t room, const struct shard_field *f)
{
	Py_ssize_t shape[SHARD_DIMS_MAX];

	for (uint32_t i = 0; i < f->ndim; i++)
		shape[i] = f->shape[i];
	describe(out, room, f->dtype, shape, (int)f->ndim, f->kind != SHARD_TENSOR);
}

/*
 * A library's error about its own array becomes one about the record.  ^C and our own errors stay
 * as they are.
 */
static bool refuse_as_said(const struct target *t)
{
	PyObject *type, *value, *trace, *text;
	const char *said;

	if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
	    !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_RuntimeError))
		return false;
	PyErr_Fetch(&type, &value, &trace);
	text = value ? PyObject_Str(value) : NULL;
	said = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
	PyErr_Clear();
	fail_record(t->record, t->f->name, "an array that cannot be read: %.400s", said ? said : "it does not say why");
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return false;
}

/* ---- numbers ---- */

struct number {
	enum { WHOLE, NEGATIVE, REAL } kind;
	uint64_t whole; /* two's complement if NEGATIVE */
	double real;
};

/* Round a double to `digits` binary digits.  The smallest step is 2^lowest. */
static double rounded(double value, int digits, int lowest)
{
	int exponent;

	if (!isfinite(value) || value == 0)
		return value;
	frexp(value, &exponent);
	exponent = exponent - digits > lowest ? exponent - digits : lowest;
	return ldexp(nearbyint(ldexp(value, -exponent)), exponent);
}

static uint16_t half_bits(double value) /* which has a half's digits */
{
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	double r = fabs(value);
	int exponent;

	if (isnan(value))
		return sign | 0x7e00;
	if (isinf(value))
		return sign | 0x7c00;
	if (r < ldexp(1, -14))
		return sign | (uint16_t)ldexp(r, 24);
	r = frexp(r, &exponent);
	return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexp(r, 11) & 1023));
}

/* Store what nearest_real() made of a number. */
static void store_real(double near, uint32_t dtype, char *to)
{
	float single = (float)near;
	uint16_t half;
	uint32_t word;

	switch (dtype) {
	case SHARD_F64:
		memcpy(to, &near, 8);
		break;
	case SHARD_F16:
		half = half_bits(near);
		memcpy(to, &half, 2);
		break;
	case SHARD_BF16:
		memcpy(&word, &single, 4);
		half = (uint16_t)(isnan(near) ? word >> 16 | 0x40 : word >> 16);
		memcpy(to, &half, 2);
		break;
	default:
		memcpy(to, &single, 4);
	}
}

static bool is_real(uint32_t dtype)
{
	return dtype >= SHARD_F16 && dtype <= SHARD_F64;
}

static bool is_signed(uint32_t dtype)
{
	return dtype == SHARD_I8 || dtype == SHARD_I16 || dtype == SHARD_I32 || dtype == SHARD_I64;
}

/* The number of a dtype of floats that is next to this one. */
static double nearest_real(double value, uint32_t dtype)
{
	switch (dtype) {
	case SHARD_F64:
		return value;
	case SHARD_F16:
		value = rounded(value, 11, -24);
		return fabs(value) > 65504 ? copysign((double)INFINITY, value) : value;
	case SHARD_BF16:
		return (double)(float)rounded(value, 8, -133);
	default:
		return (double)(float)value;
	}
}

/*
 * A fraction is rounded.  A whole number may be the number of something, and rounded it would be
 * that of another thing; so it is stored exactly, or refused.
 */
static bool store_as_real(const struct target *t, const struct number *n, char *to)
{
	static const char *const whole_most[] = {
		[SHARD_F16] = "2048", [SHARD_BF16] = "256", [SHARD_F32] = "16777216", [SHARD_F64] = "9007199254740992"};
	uint32_t dtype = t->f->dtype;
	double real = n->kind == REAL ? n->real : n->kind == NEGATIVE ? (double)(int64_t)n->whole : (double)n->whole;
	double near = nearest_real(real, dtype);
	const char *name = number_name(dtype);
	char field[64], text[32], what[256];
	bool exact = n->kind == REAL ||
		     (near == real && (n->kind == NEGATIVE ? (int64_t)real == (int64_t)n->whole
							   : real < 0x1p64 && (uint64_t)real == n->whole));

	if ((!isfinite(real) || isfinite(near)) && exact) {
		store_real(near, dtype, to);
		return true;
	}
	describe_field(field, sizeof(field), t->f);
	if (n->kind == REAL)
		snprintf(text, sizeof(text), "%.9g", real);
	else if (n->kind == NEGATIVE)
		snprintf(text, sizeof(text), "%lld", (long long)n->whole);
	else
		snprintf(text, sizeof(text), "%llu", (unsigned long long)n->whole);
	if (isfinite(near))
		snprintf(
			what, sizeof(what),
			"%s does not fit, the field is %s: %s holds whole numbers exactly up to %s; choose %s, or give "
			"float(x) to round it",
			text, field, name, whole_most[dtype],
			dtype == SHARD_F64 ? "int64 or uint64" : "float64 or int64");
	else
		snprintf(what, sizeof(what), "%s does not fit, the field is %s: its greatest number is %s; choose %s",
			 text, field,
			 dtype == SHARD_F16    ? "65504"
			 : dtype == SHARD_BF16 ? "3.3895e38"
					       : "3.4028e38",
			 isfinite(nearest_real(real, SHARD_F32)) ? "float32" : "float64");
	return refuse(t, what);
}

static bool store(const struct target *t, const struct number *n, char *to)
{
	uint32_t dtype = t->f->dtype;
	int bits = dtype == SHARD_BOOL ? 1 : 8 * (int)shard_dtype_bytes(dtype) - is_signed(dtype);
	char field[64], what[160];
	bool fits;

	if (is_real(dtype))
		return store_as_real(t, n, to);
	describe_field(field, sizeof(field), t->f);
	if (n->kind == REAL) {
		snprintf(what, sizeof(what),
			 n->real == rint(n->real) && fabs(n->real) < 1e18
				 ? "%.1f is a float, and the field is %s; give int(x)"
				 : "%g is not a whole number, and the field is %s",
			 n->real, field);
		return refuse(t, what);
	}
	fits = n->kind == NEGATIVE ? is_signed(dtype) && (int64_t)n->whole >> bits == -1
				   : bits == 64 || !(n->whole >> bits);
	if (!fits) {
		if (n->kind == NEGATIVE)
			snprintf(what, sizeof(what), "%lld does not fit, the field is %s", (long long)n->whole, field);
		else
			snprintf(what, sizeof(what), "%llu does not fit, the field is %s", (unsigned long long)n->whole,
				 field);
		return refuse(t, what);
	}
	memcpy(to, &n->whole, shard_dtype_bytes(dtype));
	return true;
}

/* A float, or a whole number of at most 64 bits; else false. */
static bool number_read(PyObject *value, struct number *n)
{
	int overflow;
	long long low;

	*n = (struct number){WHOLE, 0, 0};
	if (PyFloat_Check(value)) {
		n->kind = REAL;
		n->real = PyFloat_AsDouble(value);
		return true;
	}
	low = PyLong_AsLongLongAndOverflow(value, &overflow);
	n->kind = !overflow && low < 0 ? NEGATIVE : WHOLE;
	n->whole = overflow > 0 ? PyLong_AsUnsignedLongLong(value) : (uint64_t)low;
	if (overflow >= 0 && !PyErr_Occurred())
		return true;
	PyErr_Clear();
	return false;
}

static bool put_number(const struct target *t, PyObject *value, char *to)
{
	const char *text, *instead;
	struct number n;
	PyObject *name;

	if (PyFloat_Check(value) || PyLong_Check(value)) /* bools too */
		return number_read(value, &n) ? store(t, &n, to) : refuse(t, "a number of more than 64 bits");
	name = PyType_GetName(Py_TYPE(value));
	text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	instead = value == Py_None	? "; leave the record out, or give a number that means that there is none"
		  : PyDict_Check(value) ? "; give each of its items a name of its own"
		  : PyObject_HasAttrString(value, "__float__") ? "; give float(x), or int(x)"
							       : "";
	fail_record(t->record, t->f->name, "%s%s is not a number, an array or a list of numbers%s",
		    value == Py_None ? "" : "a value of type ",
		    value == Py_None ? "None"
		    : text	     ? text
				     : "?",
		    instead);
	Py_XDECREF(name);
	return false;
}

/* ---- arrays and lists ---- */

static bool refuse_array(const struct target *t, const struct source *s, int axis)
{
	char have[96], want[96];

	if (!s->as.dtype)
		return refuse(t, s->why);
	describe(have, sizeof(have), s->as.dtype, s->as.shape, s->as.axis_count, false);
	describe_field(want, sizeof(want), t->f);
	fail_record(t->record, t->f->name, "an array of %s, but %sthe field is %s", have,
		    axis ? "it is a part of a list, and " : "", want);
	return false;
}

/* Write an array to the place of the axes from `axis` on. */
static bool put_array(const struct target *t, const struct source *s, int axis, char *to)
{
	const struct shard_field *f = t->f;
	struct number n;

	if (s->as.dtype && !s->as.axis_count && axis == (int)f->ndim && s->as.dtype != f->dtype) {
		PyObject *scalar = number_scalar(s->as.dtype, s->as.data);
		bool read = scalar && number_read(scalar, &n);

		Py_XDECREF(scalar);
		return read && store(t, &n, to);
	}
	if (s->as.dtype != f->dtype || s->as.axis_count != (int)f->ndim - axis)
		return refuse_array(t, s, axis);
	for (int i = 0; i < s->as.axis_count; i++)
		if (s->as.shape[i] != t->shape[axis + i])
			return refuse_array(t, s, axis);
	view_copy_out(&s->as, to);
	return true;
}

static bool put(const struct target *t, PyObject *value, int axis, char *to);

static bool put_list(const struct target *t, PyObject *list, int axis, char *to)
{
	Py_ssize_t count = PySequence_Size(list), bytes = (Py_ssize_t)shard_dtype_bytes(t->f->dtype);
	char field[96];
	bool ok = count >= 0;

	if (axis == (int)t->f->ndim || count != t->shape[axis]) {
		describe_field(field, sizeof(field), t->f);
		if (axis == (int)t->f->ndim)
			fail_record(t->record, t->f->name, "a list of %zd where a number is wanted; the field is %s",
				    count, field);
		else
			fail_record(t->record, t->f->name, "a list of %zd on axis %d; the field is %s", count, axis,
				    field);
		return false;
	}
	for (uint32_t i = (uint32_t)axis + 1; i < t->f->ndim; i++)
		bytes *= t->f->shape[i];
	for (Py_ssize_t i = 0; ok && i < count; i++) {
		PyObject *item = PySequence_GetItem(list, i); /* a list may shrink while we read its items */

		ok = item && put(t, item, axis + 1, to + i * bytes);
		Py_XDECREF(item);
	}
	return ok;
}

static bool put(const struct target *t, PyObject *value, int axis, char *to)
{
	struct source s;
	bool ok;
	int rc;

	if (PyList_Check(value) || PyTuple_Check(value))
		return put_list(t, value, axis, to);
	rc = source_open(&s, value);
	if (rc < 0)
		return refuse_as_said(t);
	if (!rc && axis < (int)t->f->ndim && (PyLong_Check(value) || PyFloat_Check(value))) {
		char field[96];

		describe_field(field, sizeof(field), t->f);
		fail_record(t->record, t->f->name, "a number, but the field is %s", field);
		return false;
	}
	if (!rc)
		return put_number(t, value, to);
	ok = put_array(t, &s, axis, to);
	source_close(&s);
	return ok;
}

/* ---- strings, and fields whose length varies ---- */

static bool refuse_length(const struct target *t, Py_ssize_t n, uint32_t room, const char *what)
{
	fail_record(t->record, t->f->name,
		    "%zd %s; must be at most %lu. Leave the record out, cut it, or raise the length in the schema", n,
		    what, (unsigned long)room);
	return false;
}

/* Bytes of a str, or of an object that has bytes and no numbers; `s` holds them. */
static bool open_string(const struct target *t, PyObject *value, struct source *s, const char **data, Py_ssize_t *bytes)
{
	char have[96];

	s->buffer.obj = s->holder = NULL;
	if (PyUnicode_Check(value)) {
		*data = PyUnicode_AsUTF8AndSize(value, bytes);
		if (*data)
			return true;
		PyErr_Clear();
		return refuse(t, "a str with lone surrogates, which UTF-8 does not have");
	}
	if (t->f->semantic == SHARD_TEXT || !PyObject_CheckBuffer(value))
		return refuse(t, t->f->semantic == SHARD_TEXT ? "the field is text; give a str"
							      : "the field is a string of bytes; give bytes");
	if (source_open(s, value) <= 0) {
		PyErr_Clear();
		return refuse(t, "a buffer that cannot be read, but the field is a string of bytes; give bytes");
	}
	if (s->as.dtype == SHARD_U8 && s->as.axis_count == 1 && view_is_dense(&s->as)) {
		*data = s->as.data;
		*bytes = s->as.shape[0];
		return true;
	}
	if (s->as.dtype)
		describe(have, sizeof(have), s->as.dtype, s->as.shape, s->as.axis_count, false);
	fail_record(t->record, t->f->name,
		    "an array of %s, but the field is a string of bytes; give bytes, such as "
		    "x.tobytes()",
		    s->as.dtype ? have : "another dtype");
	source_close(s);
	return false;
}

/* `room`: bytes at most. */
static bool put_string(const struct target *t, PyObject *value, uint32_t room, char *to, uint32_t *length)
{
	Py_ssize_t bytes = 0;
	const char *data = NULL;
	struct source s;
	bool ok;

	if (!open_string(t, value, &s, &data, &bytes))
		return false;
	ok = bytes <= (Py_ssize_t)room || refuse_length(t, bytes, room, "bytes");
	if (ok && bytes)
		memcpy(to, data, (size_t)bytes);
	*length = (uint32_t)bytes;
	source_close(&s);
	return ok;
}

/* A list of texts, a row for each. */
static bool put_texts(const struct target *t, PyObject *value, Py_ssize_t count, char *to)
{
	uint32_t room = t->f->shape[1], length;
	bool ok = !PyUnicode_Check(value) || refuse(t, "the field is a list of texts; give a list of str");

	for (Py_ssize_t i = 0; ok && i < count; i++, to += room) {
		PyObject *text = PySequence_GetItem(value, i);

		ok = text && put_string(t, text, room, to, &length);
		if (ok)
			memset(to + length, 0, room - length);
		if (ok && memchr(to, 0, length))
			ok = refuse(t, "a text of a list has a NUL, which would end it");
		Py_XDECREF(text);
	}
	return ok;
}

/* The length of a list or array.  Returns -1 with an exception set if it has none. */
static Py_ssize_t length_of(const struct target *t, PyObject *value)
{
	Py_ssize_t n = PySequence_Size(value);

	if (n < 0) {
		PyErr_Clear();
		refuse(t, "the length of the field varies; give a list or an array");
	}
	return n;
}

bool value_put(const struct shard_schema *s, uint32_t field, PyObject *value, char *const *group,
	       unsigned long long record)
{
	const struct shard_field *f = &s->field[field];
	struct target t = {.f = f, .record = record};
	const struct shard_field *lengths = &s->field[f->length_field];
	char *to = group[f->group] + f->offset;
	uint64_t used;
	uint32_t length = 0;
	Py_ssize_t n;

	for (uint32_t i = 0; i < f->ndim; i++)
		t.shape[i] = f->shape[i];
	if (f->kind == SHARD_TENSOR)
		return put(&t, value, 0, to);
	if (f->kind == SHARD_STRING) {
		if (!put_string(&t, value, f->shape[0], to, &length))
			return false;
	} else {
		n = length_of(&t, value);
		if (n < 0)
			return false;
		if (n > (Py_ssize_t)f->shape[0])
			return refuse_length(&t, n, f->shape[0], "items");
		t.shape[0] = n;
		if (shard_field_is_texts(f) ? !put_texts(&t, value, n, to) : n && !put(&t, value, 0, to))
			return false;
		length = (uint32_t)n;
	}
	used = length * (f->bytes / f->shape[0]);
	memset(to + used, 0, (size_t)(f->bytes - used));
	memcpy(group[lengths->group] + lengths->offset, &length, sizeof(length));
	return true;
}

bool value_check_length(const struct shard_schema *s, uint32_t field, PyObject *given, char *const *group,
			unsigned long long record)
{
	const struct shard_field *f = &s->field[field];
	uint32_t of = 0, length;
	PyObject *item = PyLong_Check(given) ? NULL : PySequence_GetItem(given, 0); /* fields of lengths are [1] */
	Py_ssize_t said;

	PyErr_Clear();
	said = PyNumber_AsSsize_t(item ? item : given, NULL);
	Py_XDECREF(item);
	PyErr_Clear();
	while (of < s->field_count && (s->field[of].kind == SHARD_TENSOR || s->field[of].length_field != field))
		of++;
	memcpy(&length, group[f->group] + f->offset, sizeof(length));
	if (of == s->field_count || said == (Py_ssize_t)length)
		return true;
	fail_record(record, f->name,
		    "%zd, but %s has %lu: give each value as long as it is, as x[:length], or leave out %s", said,
		    s->field[of].name, (unsigned long)length, f->name);
	return false;
}
