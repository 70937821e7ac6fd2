/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_columns.c - records as a user has them: a mapping of values, or of columns, each with a row for every record
 *
 * Columns that are arrays of the fields' dtypes and shapes need no interpreter once they are open; where a group has one field and
 * its rows are dense, they are not even copied.
 */
#include "python/core/base/py_core.h"

#include <string.h>

PyObject *layout_item(const struct layout *l, PyObject *record, uint32_t f, unsigned long long number)
{
	PyObject *value = PyDict_CheckExact(record) ? Py_XNewRef(PyDict_GetItemWithError(record, l->name[f]))
					       : PyObject_GetItem(record, l->name[f]);
	PyObject *names, *text;
	const char *found;

	if (value || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_KeyError)))
		return value;
	PyErr_Clear();
	names = PySequence_List(record);
	text = names ? PyObject_Str(names) : NULL;
	found = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
	PyErr_Clear();
	fail_record(number, l->schema.field[f].name, "there is no such item; there are %.300s", found ? found : "others");
	Py_XDECREF(text);
	Py_XDECREF(names);
	return NULL;
}

void columns_close(struct columns *c)
{
	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++) {
		if (c->is_open[f])
			source_close(&c->source[f]);
		Py_XDECREF(c->value[f]);
	}
}

bool columns_open(struct columns *c, const struct layout *l, PyObject *dict, uint64_t first, uint64_t count, unsigned long long number)
{
	const struct shard_schema *schema = &l->schema;
	uint32_t fields[SHARD_GROUPS_MAX] = {0};
	Py_ssize_t n;

	memset(c, 0, sizeof(*c));
	c->all_fit = true;
	for (uint32_t f = 0; f < schema->field_count; f++) {
		const struct shard_field *field = &schema->field[f];
		int rc = 0;

		fields[field->group]++;
		c->lead[field->group] = f;
		if (field->semantic == SHARD_LENGTH)
			continue;
		c->value[f] = layout_item(l, dict, f, number);
		n = c->value[f] ? PySequence_Size(c->value[f]) : -1;
		if (n < 0 || first > (uint64_t)n || count > (uint64_t)n - first) {
			if (c->value[f] && !PyErr_Occurred())
				fail_record(number, field->name, "the column has %zd records, others have more", n);
			return false;
		}
		if (field->kind == SHARD_TENSOR)
			rc = source_open(&c->source[f], c->value[f]);
		if (rc < 0)
			return false;
		c->is_open[f] = rc > 0;
		c->all_fit = c->all_fit && rc > 0 && source_is(&c->source[f], field, 1) && c->source[f].as.shape[0] == n;
	}
	for (uint32_t g = 0; c->all_fit && g < schema->group_count; g++) {
		struct array row = c->source[c->lead[g]].as;

		for (int i = 1; i < row.axis_count; i++) {
			row.shape[i - 1] = row.shape[i];
			row.stride[i - 1] = row.stride[i];
		}
		row.axis_count--;
		c->whole[g] = fields[g] == 1 && array_is_dense(&row);
	}
	return true;
}

void columns_gather(const struct columns *c, const struct layout *l, uint64_t row, char *const *room, const char **group)
{
	const struct shard_schema *schema = &l->schema;

	for (uint32_t g = 0; g < schema->group_count; g++)
		group[g] = c->whole[g] ? c->source[c->lead[g]].as.data + (Py_ssize_t)row * c->source[c->lead[g]].as.stride[0] : room[g];
	for (uint32_t f = 0; f < schema->field_count; f++) {
		struct array part = c->source[f].as;

		if (c->whole[schema->field[f].group])
			continue;
		part.data += (Py_ssize_t)row * part.stride[0];
		part.axis_count--;
		memmove(part.shape, part.shape + 1, (size_t)part.axis_count * sizeof(*part.shape));
		memmove(part.stride, part.stride + 1, (size_t)part.axis_count * sizeof(*part.stride));
		array_copy_out(&part, room[schema->field[f].group] + schema->field[f].offset);
	}
}
