/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_writer.h - the type libshard._core.ShardWriter: one shard
 */
#ifndef SHARD_WRITE_PY_WRITER_H
#define SHARD_WRITE_PY_WRITER_H

#include "python/core/base/py_object.h"

int writer_init(PyObject *module);

#endif
