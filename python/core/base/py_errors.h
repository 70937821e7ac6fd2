/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_errors.h - errors of the library, and of this module, as exceptions of libshard._errors
 *
 * Every fail function sets an exception and returns NULL.
 */
#ifndef SHARD_BASE_PY_ERRORS_H
#define SHARD_BASE_PY_ERRORS_H

#include "python/core/base/py_object.h"

int errors_init(void);

/* The library's error.  If an exception is set already, such as that of a callback, it stays. */
PyObject *fail(const struct shard_error *err);

/*
 * The same for calls that need a GPU.  Where the library says UNSUPPORTED, a Python user gets a
 * DeviceError too.  The second is for a machine without a driver or GPU, and adds what to do in
 * Python.
 */
PyObject *fail_device(const struct shard_error *err);
PyObject *fail_no_device(const struct shard_error *err);

PyObject *fail_closed(const char *what);
PyObject *fail_memory(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
PyObject *fail_argument(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* TypeError: `what` must be so and so, and the value is of another type. */
PyObject *fail_type(const char *what, PyObject *value);

/*
 * An AttributeError is set: `owner` has no such attribute.  If people know it from other libraries,
 * the exception says what is there instead.
 */
PyObject *fail_attribute(PyObject *owner, PyObject *name);

/* RecordError of a record, and of a field of it unless `field` is NULL. */
PyObject *fail_record(unsigned long long record, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
