/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_lease.c - a lent batch, which goes back to its loader with the last array in it
 */
#include "python/core/array/py_lease.h"

#include <string.h>

#include "python/core/base/py_errors.h"
#include "shard_gpu.h"

static PyTypeObject *lease_type;

struct lease *lease_new(struct lender *l, const struct shard_batch *batch)
{
	struct lease *lease = PyObject_New(struct lease, lease_type);

	if (!lease) {
		lender_give_back(l, &(struct late){.batch = *batch});
		return NULL;
	}
	lease->lender = ref(l);
	lease->as.batch = *batch;
	lease->as.stream_count = 0;
	memset(lease->view_count, 0, sizeof(lease->view_count));
	/* They form a ring, and the lender points to the oldest. */
	lease->newer = l->held ? l->held : lease;
	lease->older = l->held ? l->held->older : lease;
	lease->newer->older = lease;
	lease->older->newer = lease;
	l->held = l->held ? l->held : lease;
	l->held_count++;
	return lease;
}

/* ---- streams ---- */

/* Note that the batch is used on this stream.  False if that is known. */
static bool note(struct lease *lease, void *stream)
{
	struct late *as = &lease->as;

	for (uint32_t i = 0; i < as->stream_count; i++)
		if (as->stream[i] == stream)
			return false;
	as->stream[as->stream_count++] = stream;
	return true;
}

void lease_use_own(struct lease *lease)
{
	note(lease, lease->lender->stream); /* there is always a place for it */
}

bool lease_use(struct lease *lease, void *stream)
{
	struct lender *l = lease->lender;
	struct shard_error err;

	if (lease->as.stream_count >= LENDER_STREAMS_MAX) {
		PyErr_Format(PyExc_BufferError,
			     "this batch was taken on %d streams already; make one of these wait for your own",
			     LENDER_STREAMS_MAX);
		return false;
	}
	if (!note(lease, stream) || stream == l->stream)
		return true;
	if (l->busy || !l->l) { /* the driver takes any thread, but the handle has one owner at a time */
		fail_argument(
			"another thread waits in this loader; take its arrays on other streams before or after that");
		return false;
	}
	if (!shard_loader_join(l->l, stream, l->stream, &err))
		return true;
	fail_device(&err);
	return false;
}

/* ---- the type ---- */

static void dealloc(PyObject *self)
{
	struct lease *lease = (struct lease *)self;
	struct lender *l = lease->lender;
	PyTypeObject *type = Py_TYPE(self);

	lease->older->newer = lease->newer;
	lease->newer->older = lease->older;
	if (l->held == lease)
		l->held = lease->newer == lease ? NULL : lease->newer;
	l->held_count--;
	lender_give_back(l, &lease->as);
	if (l->closed && !l->held_count)
		lender_let_go(l);
	PyObject_Free(self);
	Py_DECREF(type);
	unref(l);
}

int lease_init(PyObject *module)
{
	static PyType_Slot slots[] = {
		{Py_tp_dealloc, dealloc},
		{Py_tp_doc, "A slot of a loader's ring, lent to the arrays that hold this."},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core._Lease",
		.basicsize = sizeof(struct lease),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
		.slots = slots,
	};

	lease_type = add_type(module, NULL, &spec);
	return lease_type ? 0 : -1;
}
