/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_stream.c - streams of a GPU, as the numbers that users and DLPack have for them
 */
#include "python/core/array/py_stream.h"

#define LEGACY	   1 /* the legacy default stream; the driver also takes 0 for it */
#define PER_THREAD 2 /* CU_STREAM_PER_THREAD */

bool stream_take(PyObject *number, void **stream)
{
	unsigned long long n = number == Py_None ? 0 : PyLong_AsUnsignedLongLong(number);

	if (PyErr_Occurred())
		return false;
	if (n == PER_THREAD) {
		PyErr_SetString(PyExc_BufferError, "stream 2 is another stream in each thread, and any thread may free "
						   "arrays; use 1, the legacy default stream, or a stream of your own");
		return false;
	}
	*stream = n == LEGACY ? NULL : (void *)(uintptr_t)n;
	return true;
}

unsigned long long stream_number(void *stream)
{
	return stream ? (unsigned long long)(uintptr_t)stream : LEGACY;
}
