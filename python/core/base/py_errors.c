/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_errors.c - errors of the library, and of this module, as exceptions of libshard._errors
 *
 * The classes are written in Python, in libshard/_errors.py, where their documentation is.  They
 * are only found here.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "python/core/base/py_base.h"

static PyObject *classes; /* the module libshard._errors */

int errors_init(void)
{
	classes = PyImport_ImportModule("libshard._errors");
	return classes ? 0 : -1;
}

static const char *class_of(const struct shard_error *err)
{
	switch (err->status) {
	case SHARD_E_ARGUMENT:
		return "ArgumentError";
	case SHARD_E_MEMORY:
		return "OutOfMemoryError";
	case SHARD_E_IO:
		return err->os_code == ENOENT ? "NotFoundError" : "StorageError";
	case SHARD_E_CORRUPT:
		return "CorruptError";
	case SHARD_E_UNSUPPORTED:
		return "UnsupportedError";
	case SHARD_E_MISMATCH:
		return "MismatchError";
	case SHARD_E_EXISTS:
		return "ExistsError";
	case SHARD_E_DEVICE:
		return "DeviceError";
	default:
		return "Error";
	}
}

static PyObject *raise(const char *class_name, const char *message, const char *status, int os_code)
{
	PyObject *class = PyObject_GetAttrString(classes, class_name), *exception = NULL;
	/* A file's name in the message may be any bytes. */
	PyObject *text = class ? PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "backslashreplace") : NULL;

	if (text)
		exception = PyObject_CallFunction(class, "Osi", text, status, os_code);
	if (exception)
		PyErr_SetObject(class, exception);
	Py_XDECREF(exception);
	Py_XDECREF(text);
	Py_XDECREF(class);
	return NULL;
}

PyObject *fail(const struct shard_error *err)
{
	/* An exception of a callback or a signal handler says better why the call ended. */
	return PyErr_Occurred() ? NULL
				: raise(class_of(err), err->message, shard_status_name(err->status), err->os_code);
}

PyObject *fail_device(const struct shard_error *err)
{
	if (PyErr_Occurred() || err->status != SHARD_E_UNSUPPORTED)
		return fail(err);
	return raise("DeviceError", err->message, shard_status_name(SHARD_E_DEVICE), err->os_code);
}

PyObject *fail_no_device(const struct shard_error *err)
{
	char message[sizeof(err->message) + 64];

	snprintf(message, sizeof(message), "%s; without a GPU use device='cpu'", err->message);
	return raise("DeviceError", message, shard_status_name(SHARD_E_DEVICE), err->os_code);
}

PyObject *fail_closed(const char *what)
{
	char message[128];

	snprintf(message, sizeof(message), "this %s is closed; open it again", what);
	return raise("ClosedError", message, shard_status_name(SHARD_E_ARGUMENT), 0);
}

static PyObject *raise_formatted(const char *name, int status, const char *fmt, va_list ap)
{
	char message[512];

	vsnprintf(message, sizeof(message), fmt, ap);
	return raise(name, message, shard_status_name(status), 0);
}

PyObject *fail_memory(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	raise_formatted("OutOfMemoryError", SHARD_E_MEMORY, fmt, ap);
	va_end(ap);
	return NULL;
}

PyObject *fail_argument(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	raise_formatted("ArgumentError", SHARD_E_ARGUMENT, fmt, ap);
	va_end(ap);
	return NULL;
}

PyObject *fail_type(const char *what, PyObject *value)
{
	PyObject *name = PyType_GetName(Py_TYPE(value));

	PyErr_Clear();
	if (name)
		PyErr_Format(PyExc_TypeError, "%s, not a value of type %U", what, name);
	Py_XDECREF(name);
	return NULL;
}

PyObject *fail_attribute(PyObject *owner, PyObject *name)
{
	PyObject *type, *value, *trace, *hints, *hint = NULL;

	if (!PyErr_ExceptionMatches(PyExc_AttributeError) || !PyUnicode_GetLength(name) ||
	    PyUnicode_ReadChar(name, 0) == '_')
		return NULL;
	PyErr_Fetch(&type, &value, &trace);
	hints = PyImport_ImportModule("libshard._hints");
	if (hints)
		hint = PyObject_CallMethod(hints, "hint", "OO", owner, name);
	if (!hint || hint == Py_None) {
		PyErr_Restore(type, value, trace);
	} else {
		PyErr_Format(PyExc_AttributeError, "'%U' is not an attribute here: %U", name, hint);
		Py_XDECREF(type);
		Py_XDECREF(value);
		Py_XDECREF(trace);
	}
	Py_XDECREF(hint);
	Py_XDECREF(hints);
	return NULL;
}

PyObject *fail_record(unsigned long long record, const char *field, const char *fmt, ...)
{
	PyObject *type, *value, *trace, *number, *name;
	char message[768];
	int used = field ? snprintf(message, sizeof(message), "record %llu, field '%s': ", record, field)
			 : snprintf(message, sizeof(message), "record %llu: ", record);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message + used, sizeof(message) - (size_t)used, fmt, ap);
	va_end(ap);
	raise("RecordError", message, shard_status_name(SHARD_E_ARGUMENT), 0);
	PyErr_Fetch(&type, &value, &trace); /* raise() set an instance, so `value` is one */
	number = PyLong_FromUnsignedLongLong(record);
	name = field ? PyUnicode_FromString(field) : Py_NewRef(Py_None);
	if (number && name && value) {
		PyObject_SetAttrString(value, "record", number);
		PyObject_SetAttrString(value, "field", name);
	}
	Py_XDECREF(number);
	Py_XDECREF(name);
	PyErr_Restore(type, value, trace);
	return NULL;
}

/* ---- types of our own ---- */

int add_type(PyTypeObject **type, PyObject *module, const char *name, PyType_Spec *spec)
{
	PyObject *made = PyType_FromModuleAndSpec(module, spec, NULL);

	if (made && name && PyModule_AddObjectRef(module, name, made) < 0)
		Py_CLEAR(made);
	*type = (PyTypeObject *)made;
	return made ? 0 : -1;
}

void *object_alloc(PyTypeObject *type)
{
	return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

void object_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type); /* an object holds its type */
}
