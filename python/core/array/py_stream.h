/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_stream.h - streams of a GPU, as the numbers and objects that users and DLPack have for them
 *
 * Libraries destroy a stream with its object, and a handle of a stream that is gone must not reach
 * the driver.  So the object is kept where there is one.
 */
#ifndef SHARD_ARRAY_PY_STREAM_H
#define SHARD_ARRAY_PY_STREAM_H

#include "python/core/base/py_object.h"

struct stream {
	void *handle;
	PyObject *object; /* it owns the stream; NULL: whoever gave the number keeps it */
};

/*
 * None is the legacy default stream.  Else it is a number, or an object with __cuda_stream__,
 * cuda_stream or ptr.  For the number of CuPy's current stream its object is found.  If this
 * returns false, an exception is set.
 */
bool stream_take(PyObject *from, struct stream *out);
void stream_drop(struct stream *s);
unsigned long long stream_number(const struct stream *s); /* never 0 */

#endif
