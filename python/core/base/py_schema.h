/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_schema.h - a schema, described to Python
 */
#ifndef SHARD_BASE_PY_SCHEMA_H
#define SHARD_BASE_PY_SCHEMA_H

#include "python/core/base/py_object.h"

PyObject *schema_fields(const struct shard_schema *s); /* a list with a dict for each field */

#endif
