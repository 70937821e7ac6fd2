/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_stream.h - streams of a GPU, as the numbers that users and DLPack have for them
 */
#ifndef SHARD_ARRAY_PY_STREAM_H
#define SHARD_ARRAY_PY_STREAM_H

#include "python/core/base/py_object.h"

bool stream_take(PyObject *number, void **stream); /* None is the legacy default stream; else an exception is set */
unsigned long long stream_number(void *stream);	   /* never 0 */

#endif
