/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_array.h - read-only arrays: a view, and the object that keeps its memory alive
 */
#ifndef SHARD_ARRAY_PY_ARRAY_H
#define SHARD_ARRAY_PY_ARRAY_H

#include "python/core/array/py_lease.h"
#include "python/core/base/py_view.h"

struct array {
	PyObject_HEAD PyObject *owner; /* of the bytes, or a promise of them */
	int field;		       /* the field of a batch, if the owner is a lease; else -1 */
	int group;		       /* of a promise, in which `v.data` is an offset; else -1 */
	struct view v;
};

/* Records that will be read, group by group, when one of their arrays is looked into. */
struct promise {
	PyObject_HEAD bool (*keep)(struct promise *p, int group); /* else an exception is set */
	const char *data[SHARD_GROUPS_MAX];			  /* NULL: not yet */
	PyObject *owner[SHARD_GROUPS_MAX];
};
extern PyTypeObject *array_type; /* set by array_init() of py_array_type.h */

/* The array takes a reference to its owner.  NULL with an exception set if there is no memory. */
struct array *array_new(PyObject *owner, int field, const struct view *v);

/* A field of neighbouring rows, [count, ...shape], or that of one record if `count` is -1. */
struct array *array_of_field(PyObject *owner, int field, const struct shard_field *f, const void *data,
			     Py_ssize_t count, Py_ssize_t row_stride);

/* As array_of_field(), in rows that are promised. */
struct array *array_promised(struct promise *p, const struct shard_field *f, Py_ssize_t count, Py_ssize_t row_stride);
bool array_settle(struct array *a); /* read it now, if it is promised; else an exception is set */

/* Numbers that lie one behind the other. */
struct array *array_of_numbers(PyObject *owner, const void *data, uint32_t dtype, Py_ssize_t count);

/*
 * Copy the elements of a view of the array's memory, one behind the other.  False with an exception
 * set if they lie in a file that cannot be read any more.
 */
bool array_read(const struct array *a, const struct view *v, char *to);

/* In memory of its own: a copy, which is dense, and numbers that the caller will write to *data. */
struct array *array_copy(const struct array *a);
struct array *array_alloc(uint32_t dtype, uint64_t count, void **data);

/*
 * Some libraries write to read-only arrays.  A write to the map of a file would end the process.
 * So an array is moved to memory of its own before another library gets it.  An array above 64 MiB
 * stays on the map, because the copy may not fit memory.  Returns false with an exception set if
 * there is no memory, or if the file cannot be read any more.
 */
bool array_own(struct array *a);
bool array_is_mapped(const struct array *a);

struct lease *array_lease_on_device(const struct array *a); /* NULL: the array is in the memory of the CPU */

/*
 * Can this process follow the array's pointer?  And can the CPU?  Else an exception is set.  All
 * that look into an array ask first, so what was promised is read here.
 */
bool array_is_reachable(struct array *a);
bool array_is_readable(struct array *a);

#endif
