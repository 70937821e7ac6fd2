/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader_methods.h - methods of a loader: its place and its order, its memory, and its counters
 */
#ifndef SHARD_LOADER_PY_LOADER_METHODS_H
#define SHARD_LOADER_PY_LOADER_METHODS_H

#include "python/core/base/py_object.h"

extern PyMethodDef loader_methods[];

#endif
