/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_lease.c - a lent batch, which goes back to its loader with the last array in it
 */
#include <string.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_base.h"
#include "shard_gpu.h"

/* ---- the lender: the part of a loader that its arrays need ---- */

bool lender_is_usable(const struct lender *l)
{
	if (l->closed)
		fail_closed("loader");
	else if (l->busy)
		fail_argument("another thread waits in this loader; a loader belongs to one thread at a time");
	return !l->closed && !l->busy;
}

static int give_back_behind(struct lender *l, const struct late *late, struct shard_error *err)
{
	void *behind = late->stream_count ? late->stream[0].handle : l->stream.handle;
	int rc = SHARD_OK;

	for (uint32_t i = 1; !rc && i < late->stream_count; i++)
		rc = shard_loader_join(l->l, behind, late->stream[i].handle, err);
	return rc ? rc : shard_loader_release_after(l->l, &late->batch, behind, err);
}

static int give_back(struct lender *l, const struct late *late, struct shard_error *err)
{
	if (l->on_device || l->pins)
		return give_back_behind(l, late, err);
	(void)shard_loader_release(l->l, &late->batch, err); /* fails only in a forked child */
	return SHARD_OK;
}

/* May run any code of Python, as that of an object that destroys its stream. */
static void drop_streams(struct late *late)
{
	for (uint32_t i = 0; i < late->stream_count; i++)
		stream_drop(&late->stream[i]);
}

/* takes over the streams */
static void lender_give_back(struct lender *l, struct late *late)
{
	struct shard_error err;

	if (l->busy || give_back(l, late, &err)) /* an error is told by the next batch, which tries again */
		l->late[l->late_count++] = *late;
	else
		drop_streams(late);
}

int lender_flush(struct lender *l, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t i = 0; i < l->late_count;) {
		struct late late = l->late[i];
		struct shard_error why;
		int got = give_back(l, &late, &why);

		if (got && !rc)
			*err = why;
		rc = rc ? rc : got;
		if (got) {
			i++;
			continue;
		}
		l->late[i] = l->late[--l->late_count];
		drop_streams(&late);
	}
	return rc;
}

void lender_let_go(struct lender *l)
{
	struct shard_loader *handle = l->l;
	struct shard_error err;

	if (handle)
		(void)lender_flush(l, &err); /* close waits for what goes back, and frees the rest */
	l->l = NULL;
	Py_BEGIN_ALLOW_THREADS shard_loader_close(handle); /* waits for reads under way */
	Py_END_ALLOW_THREADS if (l->lent_memory) PyBuffer_Release(&l->lent_buffer);
	Py_CLEAR(l->lent_memory);
	for (uint32_t i = 0; l->slot && i <= l->slot_count; i++)
		Py_CLEAR(l->slot[i]);
	while (l->late_count)
		drop_streams(&l->late[--l->late_count]);
}

/* ---- the lease ---- */

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

	lease->older->newer = lease->newer;
	lease->newer->older = lease->older;
	if (l->held == lease)
		l->held = lease->newer == lease ? NULL : lease->newer;
	l->held_count--;
	lender_give_back(l, &lease->as);
	if (l->closed && !l->held_count)
		lender_let_go(l);
	object_free(self);
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

	return add_type(&lease_type, module, NULL, &spec);
}
