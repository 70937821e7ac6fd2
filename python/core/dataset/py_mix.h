/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_mix.h - the type libshard._core.Mix: several datasets or selections, with weights
 */
#ifndef SHARD_DATASET_PY_MIX_H
#define SHARD_DATASET_PY_MIX_H

#include "python/core/dataset/py_dataset.h"
#include "shard_mix.h"

struct mix {
	PyObject_HEAD struct shard_mix *m;
	PyObject *sources; /* a tuple: datasets and selections, which outlive it */
};
extern PyTypeObject *mix_type; /* set by mix_type_init() */

int mix_type_init(PyObject *module);

#endif
