/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_transform.h - what a loader does to images, as Python gives it
 */
#ifndef SHARD_LOADER_PY_TRANSFORM_H
#define SHARD_LOADER_PY_TRANSFORM_H

#include "python/core/base/py_object.h"
#include "shard_gpu.h"

struct transform {
	struct shard_loader_transform t;
	struct shard_transform_options o;
	const char *as_stored[SHARD_FIELDS_MAX];
};

/*
 * Of a tuple (field, views, height, width, dtype, layout, crop, pixels, mean, std, flip, area,
 * ratio, as_stored), where mean and std have four numbers, area and ratio have two, and the last is
 * a tuple of names.  Names live as long as the tuple.  Else an exception is set.
 */
bool transform_take(PyObject *tuple, struct transform *out);

#endif
