/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_source.c - arrays of other libraries, as memory that can be read
 */
#include "python/core/write/py_write.h"

#include <stdio.h>
#include <string.h>

#include "python/core/base/py_base.h"

static uint32_t dtype_of(char kind, Py_ssize_t bytes)
{
	int log2 = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;

	if (log2 < 0)
		return 0;
	switch (kind) {
	case 'u':
		return SHARD_U8 + 2 * (uint32_t)log2;
	case 'i':
		return SHARD_I8 + 2 * (uint32_t)log2;
	case 'f':
		return bytes == 2 ? SHARD_F16 : bytes == 4 ? SHARD_F32 : bytes == 8 ? SHARD_F64 : 0;
	case 'V':
		return bytes == 2 ? SHARD_BF16 : 0; /* as NumPy knows bfloat16 */
	case 'b':
		return bytes == 1 ? SHARD_BOOL : 0;
	default:
		return 0;
	}
}

static int refuse(struct source *s, const char *what)
{
	s->as.dtype = 0;
	snprintf(s->why, sizeof(s->why), "%s", what);
	return 1;
}

/* ---- what a library calls a dtype that no field has ---- */

/* Its attribute `name` as text; "" if it has none. */
static void attribute(PyObject *object, const char *name, char *out, size_t room)
{
	PyObject *value = object ? PyObject_GetAttrString(object, name) : NULL,
		 *text = value ? PyObject_Str(value) : NULL;
	const char *said = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;

	PyErr_Clear();
	snprintf(out, room, "%s", said ? said : "");
	Py_XDECREF(text);
	Py_XDECREF(value);
}

/* The kind of its dtype, as NumPy has it, such as 'M' for datetime64; NUL if it has none. */
static char kind_of(PyObject *value)
{
	PyObject *dtype = PyObject_GetAttrString(value, "dtype");
	char kind[8];

	PyErr_Clear();
	attribute(dtype, "kind", kind, sizeof(kind));
	Py_XDECREF(dtype);
	return kind[0];
}

static const char *remedy_for(const char *name, char kind)
{
	if (strstr(name, "complex") || kind == 'c')
		return "; give its real and imaginary parts, as numpy.stack([x.real, x.imag])";
	if (strstr(name, "float8"))
		return "; give x.to(torch.float16), which holds all its numbers";
	switch (kind) {
	case 'M':
	case 'm':
		return "; give whole numbers, as x.astype('int64'), which count its unit";
	case 'O':
		return "; give an array of numbers, or a list";
	case 'S':
	case 'U':
	case 'T':
		return "; a text is a str, in a field of type text[<=200]";
	case 'V':
		return "; give each part as an item of its own, as x['name']";
	default:
		if (name[0] == '>' || name[0] == '!')
			return "; make it little-endian";
		return kind == 'f' ? "; x.astype('float64') rounds it" : "";
	}
}

/* `name`: what the protocol calls it, for objects that do not say their dtype. */
static int refuse_dtype(struct source *s, PyObject *value, const char *name)
{
	char own[100], what[256];

	attribute(value, "dtype", own, sizeof(own));
	if (!own[0])
		snprintf(own, sizeof(own), "%s", name);
	snprintf(what, sizeof(what), "an array of dtype '%.80s', which no field has%s", own,
		 remedy_for(own, kind_of(value)));
	return refuse(s, what);
}

/* Has an array of numpy.ma items that are masked?  What lies below them is not a value. */
static bool has_mask(PyObject *value)
{
	static PyTypeObject *plain; /* the type that was seen last, of arrays without masks */
	PyObject *mask, *any;
	bool masked;

	if (Py_TYPE(value) == plain)
		return false;
	mask = PyObject_HasAttrString(value, "filled") ? PyObject_GetAttrString(value, "mask") : NULL;
	any = mask ? PyObject_CallMethod(mask, "any", NULL) : NULL;
	masked = any && PyObject_IsTrue(any) == 1;
	PyErr_Clear();
	if (!mask) {
		Py_XDECREF((PyObject *)plain);
		plain = (PyTypeObject *)Py_NewRef((PyObject *)Py_TYPE(value));
	}
	Py_XDECREF(any);
	Py_XDECREF(mask);
	return masked;
}

static int set_axes(struct source *s, int count)
{
	s->as.axis_count = count;
	return count <= VIEW_AXES_MAX ? 0 : refuse(s, "an array of more axes than a field has");
}

/* ---- the buffer protocol ---- */

static int open_buffer(struct source *s, PyObject *value)
{
	const Py_buffer *b = &s->buffer;
	const char *format;
	char kind;

	if (!PyObject_CheckBuffer(value))
		return 0;
	/* NumPy refuses bfloat16; another protocol may work. */
	if (PyObject_GetBuffer(value, &s->buffer, PyBUF_FULL_RO) < 0) {
		s->buffer.obj = NULL;
		PyErr_Clear();
		return 0;
	}
	format = b->format ? b->format : "B";
	if (*format == '<' || *format == '=' || *format == '@' || *format == '|')
		format++;
	kind = !*format || format[1]	   ? 0
	       : strchr("BHILQN", *format) ? 'u'
	       : strchr("bhilqn", *format) ? 'i'
	       : strchr("efd", *format)	   ? 'f'
	       : *format == '?'		   ? 'b'
					   : 0;
	s->as.dtype = dtype_of(kind, b->itemsize);
	s->as.data = b->buf;
	if (!s->as.dtype)
		return refuse_dtype(s, value, *format != 'Z' ? format : format[1] == 'f' ? "complex64" : "complex128");
	if (s->as.dtype == SHARD_U8 && b->ndim == 1 && !PyBytes_Check(value)) {
		kind = kind_of(value); /* NumPy gives scalars of datetime64 as bytes */
		if (kind && kind != 'u')
			return refuse_dtype(s, value, format);
	}
	if (b->suboffsets)
		return refuse(s, "an array of pointers to its rows; copy it");
	if (set_axes(s, b->ndim))
		return 1;
	if (b->ndim && !b->shape)
		return refuse(s, "an array whose buffer has no shape");
	for (int i = 0; i < b->ndim; i++) {
		s->as.shape[i] = b->shape[i];
		s->as.stride[i] = b->strides ? b->strides[i] : 0;
	}
	if (!b->strides) /* NumPy gives none for datetime64, though we asked for them */
		view_set_dense_strides(&s->as, 0);
	return 1;
}

/* ---- __array_interface__ ---- */

/* Read a tuple of numbers.  Returns -1 with an exception set if it holds anything else. */
static int take_numbers(PyObject *tuple, Py_ssize_t *out, int count)
{
	for (int i = 0; i < count; i++) {
		PyObject *number = PySequence_GetItem(tuple, i);

		out[i] = number ? PyNumber_AsSsize_t(number, PyExc_OverflowError) : -1;
		Py_XDECREF(number);
		if (PyErr_Occurred())
			return -1;
	}
	return 0;
}

/* (address, read-only), or an object with the bytes, as Pillow gives it. */
static int take_data(struct source *s, PyObject *data)
{
	if (PyTuple_Check(data) && PyTuple_Size(data) == 2) {
		s->as.data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
		return PyErr_Occurred() ? -1 : 0;
	}
	if (PyObject_GetBuffer(data, &s->buffer, PyBUF_SIMPLE) < 0) {
		s->buffer.obj = NULL;
		return -1;
	}
	s->as.data = s->buffer.buf;
	return 0;
}

static int read_interface(struct source *s, PyObject *value, PyObject *dict)
{
	PyObject *type = PyDict_GetItemString(dict, "typestr"), *shape = PyDict_GetItemString(dict, "shape");
	PyObject *stride = PyDict_GetItemString(dict, "strides"), *data = PyDict_GetItemString(dict, "data");
	const char *name = type && PyUnicode_Check(type) ? PyUnicode_AsUTF8AndSize(type, NULL) : NULL;
	bool dense = !stride || stride == Py_None, owned;

	if (!name || strlen(name) < 3 || !shape || !PyTuple_Check(shape) || !data ||
	    (!dense && !PyTuple_Check(stride))) {
		PyErr_Clear();
		return refuse(s, "an array whose __array_interface__ cannot be read");
	}
	s->as.dtype = *name == '>' && strcmp(name + 2, "1") != 0 ? 0 : dtype_of(name[1], name[2] - '0');
	if (!s->as.dtype || name[3])
		return refuse_dtype(s, value, name);
	if (set_axes(s, (int)PyTuple_Size(shape)))
		return 1;
	if (take_numbers(shape, s->as.shape, s->as.axis_count) < 0 ||
	    (!dense && take_numbers(stride, s->as.stride, s->as.axis_count) < 0) || take_data(s, data) < 0)
		return -1;
	owned = s->buffer.obj != NULL;
	if (dense)
		view_set_dense_strides(&s->as, 0);
	if (owned && (!dense || view_item_count(&s->as) * view_item_bytes(&s->as) > s->buffer.len))
		return refuse(s, "an array whose __array_interface__ has fewer bytes than it says");
	return 1;
}

/* Does a Pillow image have numbers that are not colours, such as indices of a palette? */
static bool is_coded(struct source *s, PyObject *value)
{
	static const char *const plain[] = {"1", "L", "LA", "RGB", "RGBA", "I", "F", "I;16", "I;16L", "I;16N", "I;16B"};
	PyObject *mode = PyObject_GetAttrString(value, "mode"), *bands = PyObject_GetAttrString(value, "getbands");
	const char *name = mode && bands && PyUnicode_Check(mode) ? PyUnicode_AsUTF8AndSize(mode, NULL) : NULL;
	bool coded = name;

	for (size_t i = 0; coded && i < sizeof(plain) / sizeof(plain[0]); i++)
		coded = strcmp(name, plain[i]) != 0;
	if (coded)
		snprintf(
			s->why, sizeof(s->why),
			"a Pillow image of mode '%.8s': give image.convert('RGB') for colours, or numpy.asarray(image) "
			"for its numbers",
			name);
	Py_XDECREF(bands);
	Py_XDECREF(mode);
	PyErr_Clear();
	return coded;
}

static int open_interface(struct source *s, PyObject *value)
{
	PyObject *dict = PyObject_GetAttrString(value, "__array_interface__");

	if (!dict) {
		PyErr_Clear();
		return 0;
	}
	if (is_coded(s, value)) {
		Py_DECREF(dict);
		return 1;
	}
	s->holder = dict; /* with some libraries, the dict holds the memory */
	return PyDict_Check(dict) ? read_interface(s, value, dict) : 0;
}

/* ---- DLPack ---- */

/* PyTorch exports the numbers below a view that negates them, and says nothing. */
static bool is_negated(PyObject *value)
{
	PyObject *negated = PyObject_HasAttrString(value, "is_neg") ? PyObject_CallMethod(value, "is_neg", NULL) : NULL;
	bool yes = negated && PyObject_IsTrue(negated) == 1;

	PyErr_Clear();
	Py_XDECREF(negated);
	return yes;
}

static int read_tensor(struct source *s, PyObject *value, const struct dl_tensor *t)
{
	static const char kinds[] = {
		[DL_INT] = 'i', [DL_UINT] = 'u', [DL_FLOAT] = 'f', [DL_BFLOAT] = 'V', [DL_BOOL] = 'b'};
	Py_ssize_t bytes = t->dtype.bits / 8;
	char kind = t->dtype.code < sizeof(kinds) ? kinds[t->dtype.code] : 0, what[64];

	if (t->device.type != DL_CPU && t->device.type != DL_CUDA_HOST)
		return refuse(s, "a tensor in the memory of a device; .cpu() brings it to the host");
	s->as.dtype = t->dtype.lanes == 1 && bytes * 8 == t->dtype.bits ? dtype_of(kind, bytes) : 0;
	if (!s->as.dtype) {
		snprintf(what, sizeof(what), "code %u, %u bits", t->dtype.code, t->dtype.bits);
		return refuse_dtype(s, value, what);
	}
	if (set_axes(s, t->ndim))
		return 1;
	for (int i = 0; i < t->ndim; i++) {
		s->as.shape[i] = t->shape[i];
		s->as.stride[i] = t->strides ? t->strides[i] * bytes : 0;
	}
	if (!t->strides)
		view_set_dense_strides(&s->as, 0);
	s->as.data = (const char *)t->data + t->byte_offset;
	return 1;
}

static int open_dlpack(struct source *s, PyObject *value)
{
	PyObject *method = PyObject_GetAttrString(value, "__dlpack__"), *device;
	int type = DL_CPU, id = 0;
	void *managed;

	if (!method) {
		PyErr_Clear();
		return 0;
	}
	device = PyObject_CallMethod(value, "__dlpack_device__", NULL);
	if (!device || !PyArg_ParseTuple(device, "ii", &type, &id)) {
		Py_XDECREF(device);
		Py_DECREF(method);
		return -1;
	}
	Py_DECREF(device);
	if (type != DL_CPU && type != DL_CUDA_HOST) {
		Py_DECREF(method);
		return refuse(s, "a tensor in the memory of a device; .cpu() brings it to the host");
	}
	if (is_negated(value)) {
		Py_DECREF(method);
		return refuse(s, "a view that negates the numbers of a tensor; give x.resolve_neg()");
	}
	/* The tensor stays in the capsule, whose life is that of the memory. */
	s->holder = PyObject_CallFunction(method, NULL);
	Py_DECREF(method);
	if (!s->holder)
		return -1;
	managed = PyCapsule_GetPointer(s->holder, "dltensor");
	return managed ? read_tensor(s, value, &((struct dl_managed *)managed)->tensor) : -1;
}

/* ---- any of them ---- */

int source_open(struct source *s, PyObject *value)
{
	int rc;

	s->buffer.obj = s->holder = NULL;
	s->as.dtype = 0;
	s->why[0] = '\0';
	if (PyUnicode_Check(value) || PyLong_Check(value) || PyFloat_Check(value) || PyList_Check(value) ||
	    PyTuple_Check(value) || value == Py_None)
		return 0; /* the most frequent objects that are not arrays */
	rc = open_buffer(s, value);
	if (!rc)
		rc = open_interface(s, value);
	if (!rc && !s->holder)
		rc = open_dlpack(s, value);
	for (int i = 0; rc > 0 && s->as.dtype && i < s->as.axis_count; i++)
		if (s->as.shape[i] < 0)
			rc = refuse(s, "an array with an axis of negative length");
	if (rc > 0 && s->as.dtype && has_mask(value))
		rc = refuse(s, "an array with masked items; x.filled(0) gives each of them a number");
	if (rc <= 0)
		source_close(s);
	return rc;
}

void source_close(struct source *s)
{
	if (s->buffer.obj)
		PyBuffer_Release(&s->buffer);
	s->buffer.obj = NULL;
	Py_CLEAR(s->holder);
}

bool source_is(const struct source *s, const struct shard_field *f, int axis)
{
	if (s->as.dtype != f->dtype || s->as.axis_count - axis != (int)f->ndim)
		return false;
	for (uint32_t i = 0; i < f->ndim; i++)
		if (s->as.shape[(int)i + axis] != (Py_ssize_t)f->shape[i])
			return false;
	return true;
}

/*
 * describe(object): (dtype, shape) of an array, (what is wrong with it, ()), or None if it is
 * not an array
 */
PyObject *source_describe(PyObject *Py_UNUSED(self), PyObject *value)
{
	struct source s;
	PyObject *shape, *out;
	int rc = source_open(&s, value);

	if (rc <= 0)
		return rc ? NULL : Py_NewRef(Py_None);
	shape = s.as.dtype ? view_shape(&s.as) : PyTuple_New(0);
	out = shape ? Py_BuildValue("(sN)", s.as.dtype ? number_name(s.as.dtype) : s.why, shape) : NULL;
	source_close(&s);
	return out;
}
