/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_transform.c - see py_transform.h
 */
#include "python/core/loader/py_transform.h"

bool transform_take(PyObject *tuple, struct transform *out)
{
	struct shard_transform_options *o = &out->o;
	float *m = o->mean, *s = o->std;

	*out = (struct transform){.t = {.size = sizeof(out->t)}, .o = {.size = sizeof(out->o)}};
	out->t.options = o;
	return PyArg_ParseTuple(tuple, "sIIIIIII(ffff)(ffff)d(dd)(dd)", &out->t.field, &out->t.views, &o->height,
				&o->width, &o->dtype, &o->layout, &o->crop, &o->pixels, m, m + 1, m + 2, m + 3, s,
				s + 1, s + 2, s + 3, &o->flip, &o->area_min, &o->area_max, &o->ratio_min,
				&o->ratio_max);
}
