/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_batch.h - a batch as Python has it: a dict of arrays, and where the records come from
 */
#ifndef SHARD_LOADER_PY_BATCH_H
#define SHARD_LOADER_PY_BATCH_H

#include "python/core/loader/py_loader.h"

int batch_init(PyObject *module);
PyObject *batch_new(struct loader *l, const struct shard_batch *b); /* takes over the batch, also if it fails */

#endif
