/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_device.c - batches in the memory of a GPU: which streams use one, and when it goes back
 *
 * A batch comes on the loader's stream.  Who takes an array says on which stream it will be used (DLPack), or gets the
 * loader's stream (__cuda_array_interface__, data_ptr): other streams are made to wait for that one, and noted.  When the
 * last array dies, the batch goes back behind all that was queued on these streams until then.
 */
#include "python/core/base/py_core.h"

#include <string.h>

#define PER_THREAD 2 /* CU_STREAM_PER_THREAD */

/* ---- errors ---- */

PyObject *device_fail(const struct shard_error *err)
{
	static const char c_advice[] = "shard_loader_next()";
	struct shard_error told = *err;
	char *at = strstr(told.message, c_advice);

	if (err->status == SHARD_E_UNSUPPORTED) { /* there is none: to who works in Python that is the same kind of thing */
		told.status = SHARD_E_DEVICE;
		if (at)
			memcpy(at, "device='cpu'", sizeof("device='cpu'"));
	}
	return fail(&told);
}

/* ---- streams ---- */

/* As users and DLPack number them: 1 is the legacy default stream, which the driver takes for 0, too. */
static void *stream_of(unsigned long long number)
{
	return number == 1 ? NULL : (void *)(uintptr_t)number;
}

bool device_take_stream(PyObject *number, void **stream)
{
	unsigned long long n = number == Py_None ? 0 : PyLong_AsUnsignedLongLong(number);

	if (PyErr_Occurred())
		return false;
	if (n == PER_THREAD) {
		PyErr_SetString(PyExc_BufferError, "stream 2 is another one in each thread, and arrays die in any; use the legacy default stream, 1, or one "
						   "of your own");
		return false;
	}
	*stream = stream_of(n);
	return true;
}

unsigned long long device_stream_number(const struct loader *l)
{
	return l->stream ? (unsigned long long)(uintptr_t)l->stream : 1;
}

bool device_open(struct loader *l, PyObject *stream)
{
	struct shard_error err;

	l->on_device = true;
	if (!device_take_stream(stream, &l->stream))
		return false;
	if (!shard_stream_gpu(l->stream, &l->gpu, &err))
		return true;
	device_fail(&err);
	return false;
}

/* Note that the batch is used on this stream. */
static bool note(struct lease *lease, void *stream)
{
	struct late *as = &lease->as;

	for (uint32_t i = 0; i < as->stream_count; i++)
		if (as->stream[i] == stream)
			return false;
	as->stream[as->stream_count++] = stream;
	return true;
}

void device_use_own(struct lease *lease)
{
	note(lease, lease->loader->stream); /* for which there is always a place */
}

bool device_use(struct lease *lease, void *stream)
{
	struct loader *l = lease->loader;
	struct shard_error err;

	if (lease->as.stream_count >= LEASE_STREAMS_MAX) {
		PyErr_Format(PyExc_BufferError, "this batch was taken on %d streams already; make one of these wait for your own", LEASE_STREAMS_MAX);
		return false;
	}
	if (!note(lease, stream) || stream == l->stream)
		return true;
	if (l->busy || !l->l) { /* the driver wants no turns, but the handle has one owner at a time */
		fail_argument("another thread waits in this loader; take its arrays on other streams before, or behind that");
		return false;
	}
	if (!shard_loader_join(l->l, stream, l->stream, &err))
		return true;
	device_fail(&err);
	return false;
}

/* ---- batches ---- */

int device_begin(struct loader *l, struct shard_error *err)
{
	int rc;

	l->busy = true;
	Py_BEGIN_ALLOW_THREADS
	rc = shard_loader_begin_device(l->l, l->stream, err);
	Py_END_ALLOW_THREADS
	l->busy = false;
	return rc;
}

int device_next(struct loader *l, struct shard_batch *b, struct shard_error *err)
{
	int rc;

	l->busy = true;
	Py_BEGIN_ALLOW_THREADS
	rc = shard_loader_next_device(l->l, l->stream, b, err);
	Py_END_ALLOW_THREADS
	l->busy = false;
	lease_flush(l);
	return rc;
}

void device_give_back(struct loader *l, const struct late *late)
{
	void *behind = late->stream_count ? late->stream[0] : l->stream;
	struct shard_error err;
	int rc = SHARD_OK;

	for (uint32_t i = 1; !rc && i < late->stream_count; i++)
		rc = shard_loader_join(l->l, behind, late->stream[i], &err);
	/* Where the driver fails, next says so; a batch that nothing is known of is never used again. */
	if (!rc)
		(void)shard_loader_release_after(l->l, &late->batch, behind, &err);
}

/* ---- arrays ---- */

PyObject *array_cuda_interface(PyObject *self, void *unused)
{
	struct array *a = (struct array *)self;
	struct lease *lease = array_lease_on_device(a);
	PyObject *shape, *strides, *out = NULL;

	(void)unused;
	if (!lease) {
		PyErr_SetString(PyExc_AttributeError, "this array is in the memory of the CPU: it has no __cuda_array_interface__");
		return NULL;
	}
	if (!array_is_reachable(a))
		return NULL;
	device_use_own(lease);
	shape = array_shape(self, NULL);
	strides = array_strides(self, NULL);
	if (shape && strides)
		out = Py_BuildValue("{s:s,s:O,s:O,s:(KO),s:K,s:i}", "typestr", array_typestr(a->dtype), "shape", shape, "strides", strides, "data",
				    (unsigned long long)(uintptr_t)a->data, Py_True, "stream", device_stream_number(lease->loader), "version", 3);
	Py_XDECREF(shape);
	Py_XDECREF(strides);
	return out;
}
