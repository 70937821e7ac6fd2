/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader_type.h - the type libshard._core.Loader, and its epochs
 */
#ifndef SHARD_LOADER_PY_LOADER_TYPE_H
#define SHARD_LOADER_PY_LOADER_TYPE_H

#include "python/core/base/py_object.h"

int loader_init(PyObject *module);

#endif
