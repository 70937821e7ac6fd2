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
};

/*
 * Of a tuple (field, views, height, width, dtype, layout, crop, pixels, mean, std, flip, area,
 * ratio), where mean and std have four numbers and the last two have two.  The name lives as long
 * as the tuple.  Else an exception is set.
 */
bool transform_take(PyObject *tuple, struct transform *out);

#endif
