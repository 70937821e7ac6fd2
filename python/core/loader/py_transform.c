/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_transform.c - what a loader does to images, as Python gives it
 */
#include "python/core/loader/py_loader.h"

#include "python/core/base/py_errors.h"

bool transform_take(PyObject *tuple, struct transform *out)
{
	struct shard_transform_options *o = &out->o;
	float *m = o->mean, *s = o->std;
	PyObject *names;
	Py_ssize_t count;

	*out = (struct transform){.t = {.size = sizeof(out->t)}, .o = {.size = sizeof(out->o)}};
	out->t.options = o;
	if (!PyArg_ParseTuple(tuple, "sIIIIIII(ffff)(ffff)d(dd)(dd)O!", &out->t.field, &out->t.views, &o->height,
			      &o->width, &o->dtype, &o->layout, &o->crop, &o->pixels, m, m + 1, m + 2, m + 3, s, s + 1,
			      s + 2, s + 3, &o->flip, &o->area_min, &o->area_max, &o->ratio_min, &o->ratio_max,
			      &PyTuple_Type, &names))
		return false;
	count = PyTuple_Size(names);
	if (count > SHARD_FIELDS_MAX) {
		fail_argument("transform_as_stored has %zd names; a dataset has at most %d fields", count,
			      SHARD_FIELDS_MAX);
		return false;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		out->as_stored[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL);
		if (!out->as_stored[i])
			return false;
	}
	out->t.as_stored = out->as_stored;
	out->t.as_stored_count = (uint32_t)count;
	return true;
}
