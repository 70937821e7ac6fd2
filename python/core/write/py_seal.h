/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_seal.h - shards become a dataset, and the folder gets its name
 */
#ifndef SHARD_WRITE_PY_SEAL_H
#define SHARD_WRITE_PY_SEAL_H

#include "python/core/base/py_object.h"

extern PyMethodDef seal_functions[]; /* of the module */

#endif
