/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_lease.c - a lent batch, that goes back to its loader with the last view of it
 *
 * Nobody calls release in Python.  A batch's large fields are views that hold the lease; when the last of them dies, in
 * whatever thread, its slot is free.  A loader belongs to one thread at a time: what dies while another one is inside of
 * it waits in a list.
 */
#include "python/core/base/py_core.h"

#include <stdio.h>
#include <string.h>

PyTypeObject *lease_type;

static void give_back(struct loader *l, const struct late *late)
{
	struct shard_error err;

	if (l->busy)
		l->late[l->late_count++] = *late; /* has a place for every slot */
	else if (l->on_device)
		device_give_back(l, late);
	else
		(void)shard_loader_release(l->l, &late->batch, &err); /* fails in a forked child only, which has no ring */
}

void lease_flush(struct loader *l)
{
	while (l->late_count)
		give_back(l, &l->late[--l->late_count]);
}

struct lease *lease_new(struct loader *l, const struct shard_batch *batch)
{
	struct lease *lease = PyObject_New(struct lease, lease_type);

	if (!lease) {
		give_back(l, &(struct late){.batch = *batch});
		return NULL;
	}
	lease->loader = ref(l);
	lease->as.batch = *batch;
	lease->as.stream_count = 0;
	memset(lease->view_count, 0, sizeof(lease->view_count));
	/* A ring of them, the loader pointing to the oldest. */
	lease->newer = l->held ? l->held : lease;
	lease->older = l->held ? l->held->older : lease;
	lease->newer->older = lease;
	lease->older->newer = lease;
	l->held = l->held ? l->held : lease;
	l->held_count++;
	return lease;
}

static void dealloc(PyObject *self)
{
	struct lease *lease = (struct lease *)self;
	struct loader *l = lease->loader;
	PyTypeObject *type = Py_TYPE(self);

	lease->older->newer = lease->newer;
	lease->newer->older = lease->older;
	if (l->held == lease)
		l->held = lease->newer == lease ? NULL : lease->newer;
	l->held_count--;
	give_back(l, &lease->as);
	if (l->closed && !l->held_count)
		loader_let_go(l);
	PyObject_Free(self);
	Py_DECREF(type);
	unref(l);
}

PyObject *lease_fail_held(const struct loader *l)
{
	const struct shard_schema *s = shard_dataset_schema(l->dataset->ds);
	char who[256];
	size_t used = 0;
	const struct lease *lease = l->held;

	who[0] = '\0';
	for (uint32_t i = 0; i < l->held_count && used < 160; i++, lease = lease->newer) {
		used += (size_t)snprintf(who + used, sizeof(who) - used, "%sstep %llu (", i ? ", " : "", (unsigned long long)lease->as.batch.step);
		for (uint32_t f = 0, n = 0; f < s->field_count && used < 200; f++)
			if (lease->view_count[f])
				used += (size_t)snprintf(who + used, sizeof(who) - used, "%s%s", n++ ? ", " : "", s->field[f].name);
		used += (size_t)snprintf(who + used, sizeof(who) - used, ")");
	}
	return fail_argument("%u batches are still held, of %s; max_held is %u. Drop them, copy() what is to stay, or open the loader with "
			     "a greater max_held", l->held_count, who, l->max_held);
}

int lease_init(PyObject *module)
{
	static PyType_Slot slots[] = {
		{Py_tp_dealloc, dealloc},
		{Py_tp_doc, "A slot of a loader's ring, lent to the views that hold this."},
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
