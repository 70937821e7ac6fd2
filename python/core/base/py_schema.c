/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_schema.c - a schema, described to Python
 */
#include "python/core/base/py_schema.h"
#include "shard_pack.h"

#include "python/core/base/py_number.h"

static PyObject *field_dict(const struct shard_field *f)
{
	PyObject *shape = PyTuple_New(f->ndim);

	for (uint32_t i = 0; shape && i < f->ndim; i++)
		PyTuple_SetItem(shape, (Py_ssize_t)i, PyLong_FromUnsignedLong(f->shape[i]));
	return Py_BuildValue("{s:s,s:s,s:N,s:s,s:s,s:s,s:I,s:I,s:K,s:K,s:K,s:I}", "name", f->name, "dtype",
			     number_name(f->dtype), "shape", shape, "kind", shard_kind_name(f->kind), "layout",
			     shard_layout_name(f->layout), "semantic", shard_semantic_name(f->semantic), "group",
			     f->group, "ragged_axes", f->ragged_axes, "offset", f->offset, "bytes", f->bytes, "stride",
			     f->stride, "length_field", f->length_field);
}

PyObject *schema_fields(const struct shard_schema *s)
{
	PyObject *list = PyList_New(0), *dict;

	for (uint32_t f = 0; list && f < s->field_count; f++) {
		dict = field_dict(&s->field[f]);
		if (!dict || PyList_Append(list, dict) < 0)
			Py_CLEAR(list);
		Py_XDECREF(dict);
	}
	return list;
}
