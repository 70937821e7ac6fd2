/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_layout.h - the schema of records that are to be written, made of what Python describes
 */
#ifndef SHARD_WRITE_PY_LAYOUT_H
#define SHARD_WRITE_PY_LAYOUT_H

#include "python/core/base/py_object.h"

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

#endif
