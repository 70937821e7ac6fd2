/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_lease.c - a lent batch, which goes back to its loader with the last array in it
 */
#include "python/core/array/py_array.h"

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

static bool is_noted(const struct late *as, const struct stream *s)
{
	for (uint32_t i = 0; i < as->stream_count; i++)
		if (as->stream[i].handle == s->handle)
			return true;
	return false;
}

/* Note that the batch is used on this stream, and keep its object. */
static void note(struct late *as, const struct stream *s)
{
	struct stream *to = &as->stream[as->stream_count++];

	to->handle = s->handle;
	to->object = Py_XNewRef(s->object);
}

void lease_use_own(struct lease *lease)
{
	if (!is_noted(&lease->as, &lease->lender->stream))
		note(&lease->as, &lease->lender->stream); /* there is always a place for it */
}

bool lease_use(struct lease *lease, const struct stream *s)
{
	struct lender *l = lease->lender;
	struct shard_error err;

	if (is_noted(&lease->as, s))
		return true;
	if (s->handle == l->stream.handle) {
		lease_use_own(lease);
		return true;
	}
	if (lease->as.stream_count >= LENDER_STREAMS_MAX) {
		PyErr_Format(PyExc_BufferError,
			     "this batch was taken on %d streams already; make one of these wait for your own",
			     LENDER_STREAMS_MAX);
		return false;
	}
	if (l->busy || !l->l) { /* the driver takes any thread, but the handle has one owner at a time */
		fail_argument(
			"another thread waits in this loader; take its arrays on other streams before or after that");
		return false;
	}
	if (shard_loader_join(l->l, s->handle, l->stream.handle, &err)) {
		fail_device(&err);
		return false;
	}
	note(&lease->as, s);
	return true;
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
