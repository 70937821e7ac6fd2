/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_write.h - writers, layouts and seals as Python objects
 */
#ifndef SHARD_PYTHON_CORE_WRITE_PY_WRITE_H
#define SHARD_PYTHON_CORE_WRITE_PY_WRITE_H

#include "python/core/base/py_base.h"

/* ---- py_layout.c ---- */

struct layout {
	PyObject_HEAD struct shard_schema schema;
	PyObject *name[SHARD_FIELDS_MAX];
	bool is_length[SHARD_FIELDS_MAX]; /* of another field, and written with it */
};
extern PyTypeObject *layout_type;
int layout_init(PyObject *module);
PyObject *layout_meaning(PyObject *self, PyObject *args); /* of the module: what a field is by its name */

/*
 * The item of a mapping for a field.  Else RecordError is set, which names the items that there
 * are.
 */
PyObject *layout_item(const struct layout *l, PyObject *record, uint32_t field, unsigned long long number);

/* The same; NULL without an exception if the mapping has no such item. */
PyObject *layout_item_if(const struct layout *l, PyObject *record, uint32_t field);

/*
 * py_source.c
 *
 * They are read by the buffer protocol (NumPy, bytes, JAX), __array_interface__ (Pillow, bfloat16
 * of NumPy) or DLPack (PyTorch), in this order.  Nothing is copied.  Their dtype and shape are not
 * trusted to fit: the caller compares them.
 */

struct source {
	struct view as;
	Py_buffer buffer; /* holds the memory, if it has an obj; else `holder` does */
	PyObject *holder;
	char why[256]; /* if dtype is 0: what is wrong with the array */
};

int source_open(struct source *s, PyObject *value); /* 1, or 0 if that is not an array, or -1 with an exception set */
void source_close(struct source *s);

/* Has it the field's dtype, and behind its first `axis` axes the field's shape? */
bool source_is(const struct source *s, const struct shard_field *f, int axis);

PyObject *source_describe(PyObject *self, PyObject *value); /* of the module: dtype and shape */

/*
 * py_layout.c: columns
 *
 * Columns that are arrays of the fields' dtypes and shapes need no interpreter once they are open.
 * Where a group has one field and the rows of its column are dense, they are not even copied.
 */

struct columns {
	PyObject *value[SHARD_FIELDS_MAX];
	struct source source[SHARD_FIELDS_MAX];
	bool is_open[SHARD_FIELDS_MAX], all_fit; /* the columns are arrays of the fields' dtypes and shapes */
	/* a record of the group lies in its column as it is to be written */
	bool whole[SHARD_GROUPS_MAX];
	uint32_t lead[SHARD_GROUPS_MAX]; /* the field of that column */
};

/*
 * Open the columns of `count` records from row `first` on, the first of which has this number.
 * Else an exception is set; close the columns in either case.
 */
bool columns_open(struct columns *c, const struct layout *l, PyObject *dict, uint64_t first, uint64_t count,
		  unsigned long long number);
void columns_close(struct columns *c);

/*
 * If all_fit: where a row is, in place, or put together in `room`, which has that of a record for
 * each group.  Needs no lock.
 */
void columns_gather(const struct columns *c, const struct layout *l, uint64_t row, char *const *room,
		    const char **group);

/*
 * py_value.c
 *
 * Arrays must have the field's dtype and shape: nothing is converted that could be lost.  Numbers
 * of Python, alone or in lists, are checked one by one: whole numbers are stored exactly, and
 * others are rounded once, to nearest, half to even.  A number above the greatest of its field is
 * refused.
 */

/* Write a value to its place in the group buffers.  Else RecordError is set. */
bool value_put(const struct shard_schema *s, uint32_t field, PyObject *value, char *const *group,
	       unsigned long long record);

/*
 * Is a length that was given beside its value that of the value, which is in the group buffers
 * already?  Else RecordError is set.
 */
bool value_check_length(const struct shard_schema *s, uint32_t field, PyObject *given, char *const *group,
			unsigned long long record);

/* ---- py_writer.c ---- */

int writer_init(PyObject *module);

extern PyMethodDef seal_functions[]; /* of the module */

#endif
